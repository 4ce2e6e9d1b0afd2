package config

import (
	"slices"
	"strings"
	"testing"
)

func TestMaskDSN(t *testing.T) {
	for dsn, want := range map[string]string{
		// URLs.
		"postgres://app:hunter2@db:5432/app?sslmode=disable": "postgres://app:***@db:5432/app?sslmode=disable",
		"PostgreSQL://app:hunter2@db/app":                    "PostgreSQL://app:***@db/app",
		"postgres://app@db/app":                              "postgres://app@db/app",
		"postgres://db:5432/app":                             "postgres://db:5432/app",
		"postgres://[::1]:5432/app":                          "postgres://[::1]:5432/app",
		"postgres://app:hunter2@[::1]:5432/app":              "postgres://app:***@[::1]:5432/app",
		"postgres:///app?host=/run/postgresql":               "postgres:///app?host=/run/postgresql",
		"postgres://app:@db/app":                             "postgres://app:***@db/app",
		"mongodb://app:hunter2@a:27017,b:27017/db":           "mongodb://app:***@a:27017,b:27017/db",
		"mongodb://a:27017,b:27017/db?replicaSet=rs":         "mongodb://a:27017,b:27017/db?replicaSet=rs",
		"mongodb+srv://app:hunter2@cluster/db":               "mongodb+srv://app:***@cluster/db",
		"mysql://app:hunter2@db:3306/app":                    "mysql://app:***@db:3306/app",
		"mysql://app:hunter2@tcp(db:3306)/app":               "mysql://app:***@tcp(db:3306)/app",
		// Passwords that should have been escaped.
		"postgres://app:hun@ter:2/@db/app": "postgres://app:***@db/app",
		"postgres://app:hunter2?#%zz@db":   "postgres://app:***@db",
		// Passwords as parameters.
		"postgres://db/app?user=app&password=hunter2&sslmode=disable": "postgres://db/app?user=app&password=***",
		"postgres://db/app?sslpassword=hunter2":                       "postgres://db/app?sslpassword=***",
		"postgres://app:x@db/app?password=hunter2":                    "postgres://app:***@db/app?password=***",
		"postgres://db:5432/app?password=hun@ter2":                    "postgres://db:***",
		"mongodb://db/?tlsCertificateKeyFilePassword=hunter2":         "mongodb://db/?tlsCertificateKeyFilePassword=***",
		// MySQL's own form.
		"app:hunter2@tcp(127.0.0.1:3306)/app?parseTime=true": "app:***@tcp(127.0.0.1:3306)/app?parseTime=true",
		"app:hun://t@er2@unix(/run/mysqld.sock)/app":         "app:***@unix(/run/mysqld.sock)/app",
		"app@tcp(db:3306)/app":                               "app@tcp(db:3306)/app",
		// Keywords and values.
		"host=db user=app password=hunter2":           "host=db user=app password=***",
		"host=db password = 'hun ter\\'2' dbname=app": "host=db password =***",
		"password=hunter2":                            "password=***",
		"PASSWORD=hunter2 host=db":                    "PASSWORD=***",
		"host=db user=app@srv password=hunter2":       "host=db user=app@srv password=***",
		"host=db user=app password=hun@ter2":          "host=db user=app password=***",
		"hostaddr=::1 user=app dbname=app":            "hostaddr=::1 user=app dbname=app",
		// SQLite.
		"sqlite:orders.db":                          "sqlite:orders.db",
		"sqlite::memory:":                           "sqlite::memory:",
		"sqlite:file:a.db?_auth_pass=hunter2":       "sqlite:file:a.db?_auth_pass=***",
		"sqlite:a.db?_pragma=key('hunter2')":        "sqlite:a.db?_pragma=key(***",
		"sqlite:a.db?_pragma=busy_timeout(5000)":    "sqlite:a.db?_pragma=busy_timeout(5000)",
		"sqlite:///var/lib/postrider/orders.db?a=b": "sqlite:///var/lib/postrider/orders.db?a=b",
		// Broken or unknown.
		"":                                  "",
		"postgres://app:hunter2":            "postgres://app:***",
		"postgres://app:hunter2/db":         "postgres://app:***",
		"postgres:app:hunter2@db":           "postgres:***@db",
		"app:hunter2":                       "app:***",
		" postgres://app:hunter2@db":        " postgres://app:***@db",
		"postgresql+x://app:hunter2@db/app": "postgresql+x:***@db/app",
		"${DATABASE_URL}":                   "${DATABASE_URL}",
	} {
		if got := MaskDSN(dsn); got != want {
			t.Errorf("MaskDSN(%q)\n gives %q\n  want %q", dsn, got, want)
		}
	}
}

// Whatever the password is, escaped or not, the masked DSN is one of a few
// fixed texts: nothing of the password can be in it.
func FuzzMaskDSN(f *testing.F) {
	for _, password := range []string{
		"hunter2", "", "a@b", "a:b", "a/b?c#d", "://", "password=x", "?password=x&y", "x@password=y@z",
		"' or \\", " host=x password=y", "[::1]", "$$", "%40", "\x00\n@:", "key(", "=", "ключ@:=", "@", ":",
	} {
		f.Add(password)
	}
	templates := map[string][]string{ // P is the password
		"postgres://app:P@db:5432/app?sslmode=disable": {"postgres://app:***@db:5432/app?sslmode=disable", "postgres://app:***"},
		"mongodb+srv://app:P@a:1,b:2/db":               {"mongodb+srv://app:***@a:1,b:2/db", "mongodb+srv://app:***"},
		"mysql://app:P@tcp(db:3306)/app":               {"mysql://app:***@tcp(db:3306)/app", "mysql://app:***"},
		"app:P@tcp(db:3306)/app":                       {"app:***@tcp(db:3306)/app", "app:***"},
		"app:P@unix(/run/mysqld.sock)/app":             {"app:***@unix(/run/mysqld.sock)/app", "app:***"},
		"unknown+x://app:P@db/app":                     {"unknown+x:***@db/app", "unknown+x:***"},
		"host=db user=app password=P dbname=app":       {"host=db user=app password=***"},
		"host=db user=app password='P'":                {"host=db user=app password=***"},
		"postgres://db/app?a=b&password=P&c=d":         {"postgres://db/app?a=b&password=***"},
		"postgres://db:5432/app?sslpassword=P":         {"postgres://db:5432/app?sslpassword=***", "postgres://db:***"},
		"postgres://app:P@db/app?password=P":           {"postgres://app:***@db/app?password=***", "postgres://app:***"},
		"sqlite:a.db?_auth_pass=P":                     {"sqlite:a.db?_auth_pass=***", "sqlite:***"},
	}
	f.Fuzz(func(t *testing.T, password string) {
		for template, allowed := range templates {
			dsn := strings.ReplaceAll(template, "P", password)
			if got := MaskDSN(dsn); !slices.Contains(allowed, got) {
				t.Errorf("MaskDSN(%q) gives %q", dsn, got)
			}
		}
	})
}
