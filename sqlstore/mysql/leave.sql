-- :1 member id.
DELETE FROM {relays} WHERE id = :1;
