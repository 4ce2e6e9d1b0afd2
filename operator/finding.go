package operator

// Level says how much a finding matters.
type Level string

// The levels of findings. Only errors make a check fail.
const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Finding is one line of a check: what was looked at, what was found, and what to do about it.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"` // what was looked at, such as "topic orders"
	Message string `json:"message"`
	Hint    string `json:"hint"` // what to do; empty when there is nothing to do
}

// OK says that something is as it should be.
func OK(subject, message string) Finding {
	return Finding{Level: LevelOK, Subject: subject, Message: message}
}

// Warning says that something works, but not as it should.
func Warning(subject, message, hint string) Finding {
	return Finding{Level: LevelWarning, Subject: subject, Message: message, Hint: hint}
}

// Problem says that something does not work.
func Problem(subject, message, hint string) Finding {
	return Finding{Level: LevelError, Subject: subject, Message: message, Hint: hint}
}
