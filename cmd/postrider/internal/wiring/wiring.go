// Package wiring makes the parts that a configuration names: the outbox in its database, the sinks, the relay.
package wiring

// ConfigError is a mistake in the configuration that shows only when its parts are made, such as an address that
// the database's client does not take or a certificate that is not there.
type ConfigError struct {
	Path string // the key, such as outbox.dsn
	Err  error
}

func (e *ConfigError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ConfigError) Unwrap() error { return e.Err }
