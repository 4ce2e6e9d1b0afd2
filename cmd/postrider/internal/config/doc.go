// Package config reads postrider.yaml into plain values.
//
// [Load] fills in every default, expands ${NAME} and ${NAME:-default} from
// the environment, and checks everything that can be checked without a
// database or a broker. It reports all mistakes of a file together, each with
// line, path and hint; a file with a mistake gives no configuration at all.
//
// Expansion happens in single values after the file has been parsed, so the
// content of a variable can never add a key or a list element by YAML means.
// $$ is one dollar.
//
// The file testdata/reference.yaml lists every key with its default and what
// it means; a test holds it against this package.
package config
