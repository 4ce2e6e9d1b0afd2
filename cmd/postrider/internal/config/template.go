package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/postrider/postrider/internal/header"
	"github.com/postrider/postrider/relay"
)

var templateField = regexp.MustCompile(`\{([^{}]*)\}`)

// checkTemplate gives what a template has around its fields.
func checkTemplate(text string, fields []string) (plain string, wrong *mistake) {
	for _, field := range templateField.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(fields, field[1]) {
			return "", &mistake{"has an unknown field", suggest(field[1], fields, "fields")}
		}
	}
	plain = templateField.ReplaceAllString(text, "")
	if strings.ContainsAny(plain, "{}") {
		return "", &mistake{"has a brace that encloses no field", "write {aggregate_type}, or no brace"}
	}
	return plain, nil
}

// parseKey takes the template of a message key.
func parseKey(text string) (string, *mistake) {
	if _, wrong := checkTemplate(text, relay.KeyFields()); wrong != nil {
		return "", wrong
	}
	if !strings.Contains(text, relay.DefaultKey) {
		return "", &mistake{"gives events of different keys one key, although they are in no order",
			"write {key} in it, such as {aggregate_type}-{key}"}
	}
	return text, nil
}

// readHeaders takes the headers that a route adds: their names and templates.
func readHeaders(v value) map[string]string {
	if !v.is(yaml.MappingNode) {
		return nil
	}
	headers := make(map[string]string)
	v.pairs(func(key *yaml.Node, field value) {
		if wrong := header.Mistake(key.Value); wrong != "" {
			v.r.add(key.Line, key.Column, field.path, fmt.Sprintf("%.40q %s", key.Value, wrong), "choose another name")
			return
		}
		var text string
		readString(field, &text, func(text string) (string, *mistake) {
			_, wrong := checkTemplate(text, relay.HeaderFields())
			return text, wrong
		})
		headers[key.Value] = text
	})
	return headers
}
