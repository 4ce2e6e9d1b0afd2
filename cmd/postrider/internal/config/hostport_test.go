package config

import "testing"

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "example.org": false, "localhost.example.org": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
