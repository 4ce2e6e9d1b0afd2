package config

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// parseDocument gives the root of the one YAML document in data. Without one
// it records why and gives nil.
func (r *reader) parseDocument(data []byte) *yaml.Node {
	if offset := firstUnreadable(data); offset >= 0 {
		line, column := position(data[:offset])
		r.add(line, column, "", "a byte that is no text", "save the file as UTF-8 without control characters")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.syntaxError(err, data)
		return nil
	}
	var document, second yaml.Node
	err = loader.Load(&document)
	if errors.Is(err, io.EOF) || err == nil && isNull(document.Content[0]) {
		r.add(1, 1, "", "the file is empty", "it needs at least outbox, sinks and routes")
		return nil
	}
	if err != nil {
		r.syntaxError(err, data)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		r.add(second.Line, second.Column, "", "a second document begins here", "keep one document in the file, without --- below its beginning")
	case !errors.Is(err, io.EOF):
		r.syntaxError(err, data)
	}
	return document.Content[0]
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// syntaxError records an error of the YAML library, which stops at the first.
func (r *reader) syntaxError(err error, data []byte) {
	line, column, message := 1, 1, err.Error()
	if at, ok := errors.AsType[*yaml.LoadError](err); ok {
		line, column, message = at.Mark.Line, at.Mark.Column, at.Message
		if at.ContextMsg != "" {
			message += " " + at.ContextMsg
		}
	}
	hint := "check indentation, colons, quotes and brackets here and on the line above"
	lines := strings.Split(string(data), "\n")
	if line <= len(lines) && strings.Contains(lines[line-1], "{") && strings.Contains(lines[line-1], "$") {
		hint = `between { } or [ ] put variables and templates in quotes: "${NAME}"`
	}
	r.add(line, column, "", "no valid YAML: "+message, hint)
}

// firstUnreadable gives the offset of the first byte that is neither UTF-8
// nor a character that YAML allows, or -1.
func firstUnreadable(data []byte) int {
	for offset := 0; offset < len(data); {
		char, size := utf8.DecodeRune(data[offset:])
		broken := char == utf8.RuneError && size == 1
		if broken || unicode.IsControl(char) && !strings.ContainsRune("\t\n\r\u0085", char) {
			return offset
		}
		offset += size
	}
	return -1
}

// position gives the line and column that follow the text.
func position(before []byte) (line, column int) {
	lastBreak := bytes.LastIndexByte(before, '\n')
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[lastBreak+1:]) + 1
}
