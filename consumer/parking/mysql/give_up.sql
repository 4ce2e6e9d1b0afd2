-- Parameters: 1 who gives it up, 2 reason, 3 id of the message. Its key is locked.
UPDATE {parked} SET given_up_by = ?, given_up_reason = ? WHERE id = ?
