package config

// TLS says how connections are encrypted. The zero value, {} in the file,
// trusts the system's certificate authorities.
type TLS struct {
	// CA is a PEM file of the authorities to trust instead of the system's.
	CA string
	// Cert and Key are PEM files of the client's own certificate; both are
	// set or none.
	Cert, Key string
	// ServerName is the name to verify instead of the host connected to.
	ServerName string
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
}

// readTLS gives nil where the file says nothing.
func readTLS(v value) *TLS {
	if !v.present() {
		return nil
	}
	var tls TLS
	v.object(func(o *object) {
		str(o, "ca", &tls.CA)
		str(o, "cert", &tls.Cert)
		str(o, "key", &tls.Key)
		str(o, "server_name", &tls.ServerName)
		boolean(o, "insecure_skip_verify", &tls.InsecureSkipVerify)
		if o.has("cert") != o.has("key") {
			o.problem(o.firstOf("cert", "key"), "cert and key go together", "name the files of both")
		}
	})
	return &tls
}
