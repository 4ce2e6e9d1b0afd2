package inbox

import "errors"

// Class says what an error means for the message that it belongs to.
type Class string

// The classes of errors.
const (
	ClassRetry       Class = "retry"       // this message failed in a way that may pass: the default
	ClassPermanent   Class = "permanent"   // this message can never be applied
	ClassMalformed   Class = "malformed"   // this is no message that the consumer can read: no event id, a broken one, an unknown type, a payload that does not decode
	ClassUnavailable Class = "unavailable" // the database as a whole takes nothing: says nothing about the message, and spends no attempt
	ClassSkipped     Class = "skipped"     // not tried, because an earlier message of its key was not applied
)

// classError gives an error a class.
type classError struct {
	class Class
	err   error
}

func (e *classError) Error() string { return e.err.Error() }
func (e *classError) Unwrap() error { return e.err }

// Permanent marks err, which an effect returns, as one that no retry can cure. The result for nil is nil.
func Permanent(err error) error { return withClass(ClassPermanent, err) }

// Malformed marks err, which an effect returns, as one of a message that cannot be read. The result for nil is nil.
func Malformed(err error) error { return withClass(ClassMalformed, err) }

// Unavailable marks err as one that says nothing about the message. The result for nil is nil.
func Unavailable(err error) error { return withClass(ClassUnavailable, err) }

// ErrSkipped is the error of a message that was not tried because an earlier message of its key was not applied.
var ErrSkipped = withClass(ClassSkipped, errors.New("an earlier message of its key was not applied"))

func withClass(class Class, err error) error {
	if err == nil {
		return nil
	}
	return &classError{class, err}
}

// ClassOf returns the class of an error: that which the outermost Permanent, Malformed or Unavailable gave it, ClassMalformed for a
// *KeyError, and otherwise ClassRetry. The class of nil is empty.
func ClassOf(err error) Class {
	var classified *classError
	var key *KeyError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &classified):
		return classified.class
	case errors.As(err, &key):
		return ClassMalformed
	default:
		return ClassRetry
	}
}
