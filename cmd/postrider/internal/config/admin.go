package config

// Admin says where the admin server listens.
type Admin struct {
	// Listen is its host:port; empty means that there is none. The default
	// is 127.0.0.1:8970. Other machines can reach it only if Token is set.
	Listen string
	// Token is what a caller must show; empty means that none is asked for.
	Token Secret
}

func readAdmin(v value) Admin {
	admin := Admin{Listen: "127.0.0.1:8970"}
	v.object(func(o *object) {
		isSet := strOrEmpty(o, "listen", &admin.Listen)
		str(o, "token", &admin.Token)
		if !isSet || admin.Listen == "" {
			return
		}
		host, _, ok := splitHostPort(admin.Listen)
		switch {
		case !ok:
			o.problem("listen", "is not host:port", `write 127.0.0.1:8970, or "" for no admin server`)
		case !isLoopback(host) && !o.has("token"):
			o.problem("listen", "is open to other machines, without a token", "set admin.token, or listen on 127.0.0.1")
		}
	})
	return admin
}
