package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// guard lets in who shows the token, as a bearer token or as the password of basic authentication. Without a token
// it answers only requests to a loopback name: else a web page could read the answers through a host name of its
// own that leads here.
func guard(token string, next http.Handler) http.Handler {
	if token == "" {
		return loopbackOnly(next)
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := sha256.Sum256([]byte(shownToken(r)))
		if subtle.ConstantTimeCompare(shown[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="postrider", charset="UTF-8"`)
			http.Error(w, "show admin.token as bearer token or as password", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func shownToken(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "set admin.token to use the server by this name", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// harden sets the headers under which a browser runs nothing and keeps nothing.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
