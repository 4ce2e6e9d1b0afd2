// Package postriderjsonschema checks the payloads of events by JSON Schemas, for package contract:
//
//	//go:embed schemas
//	var files embed.FS
//
//	checks, err := postriderjsonschema.Compile(files, map[string]string{"OrderPlaced": "schemas/order-placed.json"})
//	contracts, err := contract.New(contract.Config{Checks: checks})
//	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL, Validate: contracts.Event})
//
// Drafts 4, 6, 7, 2019-09 and 2020-12 are known; a schema without $schema is of 2020-12. Formats are asserted in every draft.
package postriderjsonschema

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/postrider/postrider/contract"
)

// base is where the files stand for the references between them. It reaches nothing else.
const base = "postrider:///"

// Compile returns the check of each event type, whose schema is the file that files names for it, or an error with every
// mistake in all of them. A $ref is the path of another file in fsys, relative to the file that it is in; nothing outside
// fsys is read.
//
// A problem names the place in the payload by its JSON Pointer, and what the schema asks for; it never tells a value that
// was found, but it does tell names.
func Compile(fsys fs.FS, files map[string]string) (map[string]contract.Check, error) {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(loader{fsys})
	compiler.AssertFormat()
	checks := make(map[string]contract.Check, len(files))
	var mistakes []error
	for _, eventType := range slices.Sorted(maps.Keys(files)) {
		schema, err := compiler.Compile(base + (&url.URL{Path: path.Clean(files[eventType])}).EscapedPath())
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("schema of %q, file %s: %w", eventType, files[eventType], err))
			continue
		}
		checks[eventType] = func(payload []byte) error { return check(schema, payload) }
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("JSON Schemas: %w", errors.Join(mistakes...))
	}
	return checks, nil
}

// Files returns what Compile takes for the files in the root of fsys whose names are an event type and ".json". Files in
// folders are left for references.
func Files(fsys fs.FS) (map[string]string, error) {
	names, err := fs.Glob(fsys, "*.json")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("JSON Schemas: no file is named *.json in the root")
	}
	files := make(map[string]string, len(names))
	for _, name := range names {
		files[strings.TrimSuffix(name, ".json")] = name
	}
	return files, nil
}

// loader reads schemas from a file system only.
type loader struct{ fsys fs.FS }

func (l loader) Load(address string) (any, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "postrider" {
		return nil, errors.New("a schema is read from the files only: put a copy beside them, and refer to it by its path")
	}
	text, err := fs.ReadFile(l.fsys, strings.TrimPrefix(u.Path, "/"))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}
