package config

import (
	"net"
	"net/netip"
	"strconv"
)

// splitHostPort is ok for host:port with a numeric port; the host may be
// empty, and the port 0.
func splitHostPort(address string) (host string, port uint16, ok bool) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return host, uint16(n), err == nil
}

// isLoopback is true for a host that only this machine can reach. An empty
// host is every address of the machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
