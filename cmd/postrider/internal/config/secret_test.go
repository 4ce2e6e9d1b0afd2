package config

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestSecretNeverShowsItself(t *testing.T) {
	const text = "tr0ub4dor"
	type holder struct {
		Secret  Secret
		Pointer *Secret
		List    []Secret
		Map     map[string]Secret
	}
	s := Secret(text)
	h := holder{s, &s, []Secret{s}, map[string]Secret{"k": s}}
	shown := map[string]string{"string": s.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		shown[verb] = fmt.Sprintf(verb, s) + fmt.Sprintf(verb, h)
	}
	for name, encode := range map[string]func(any) ([]byte, error){
		"json": json.Marshal,
		"yaml": func(v any) ([]byte, error) { return yaml.Dump(v) },
	} {
		out, err := encode(h)
		if err != nil {
			t.Fatal(err)
		}
		shown[name] = string(out)
	}
	type element struct{ Secret Secret }
	out, err := xml.Marshal(element{s})
	if err != nil {
		t.Fatal(err)
	}
	shown["xml"] = string(out)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "s", s, "h", h)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "s", s, "h", h)
	shown["slog"] = log.String()
	for how, got := range shown {
		if strings.Contains(got, text) || strings.Contains(strings.ToLower(got), fmt.Sprintf("%x", text)) {
			t.Errorf("%s shows the secret: %s", how, got)
		}
		if !strings.Contains(got, "***") {
			t.Errorf("%s shows nothing at all: %s", how, got)
		}
	}
	// A handler of slog that encodes by reflection never meets the Secret.
	if v := slog.AnyValue(s).Resolve(); v.Kind() != slog.KindString || v.String() != "***" {
		t.Errorf("slog resolves it to %v %v", v.Kind(), v)
	}
	if s.Reveal() != text {
		t.Errorf("Reveal gives %q", s.Reveal())
	}
}

func TestEmptySecretShowsNothing(t *testing.T) {
	if got := fmt.Sprintf("[%v]", Secret("")); got != "[]" {
		t.Errorf("got %s", got)
	}
}
