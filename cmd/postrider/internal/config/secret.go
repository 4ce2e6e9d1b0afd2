package config

import (
	"fmt"
	"io"
	"log/slog"
)

const masked = "***"

// Secret is a password, a token or a DSN. It shows itself as *** wherever it
// is printed, logged or encoded, and as nothing when it is empty; only
// [Secret.Reveal] gives the text. The zero value is the empty secret.
type Secret string

// Reveal gives the secret itself, to be handed to whoever needs it and to
// nobody else. A DSN that is to be shown goes through [MaskDSN] first.
func (s Secret) Reveal() string { return string(s) }

// String gives *** in place of the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// Format gives *** under every verb and flag, %#v and %x included.
func (s Secret) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, s.String())
}

// MarshalText gives *** to every encoder that honours encoding.TextMarshaler:
// JSON, YAML and XML among them.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue gives *** to every slog handler.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
