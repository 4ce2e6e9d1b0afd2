package webhook

import (
	"fmt"
	"net/netip"
	"syscall"
)

// refusedError says that a name led to an address that no event may go to.
type refusedError struct{ address netip.Addr }

func (e *refusedError) Error() string {
	return fmt.Sprintf("address %s is not public and refused: correct the URL, or allow private addresses", e.address)
}

// refusePrivate looks at the address that is dialled, after names were resolved. It is a net.Dialer's Control.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	dialled, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q is not understood: %w", address, err)
	}
	if !public(dialled.Addr()) {
		return &refusedError{dialled.Addr()}
	}
	return nil
}

var (
	globalUnicast6 = netip.MustParsePrefix("2000::/3") // everything public of IPv6 is in there
	nat64          = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour      = netip.MustParsePrefix("2002::/16")
)

// reserved lists, beside what netip tells, the networks that no public receiver has.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network
	netip.MustParsePrefix("100.64.0.0/10"),    // shared by carriers; metadata of clouds
	netip.MustParsePrefix("168.63.129.16/32"), // metadata of a cloud, at a public address
	netip.MustParsePrefix("192.0.0.0/24"),     // protocols; metadata of clouds
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // relays of 6to4
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("240.0.0.0/4"),      // never assigned, and broadcast
	netip.MustParsePrefix("2001::/23"),        // protocols, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),    // documentation
	netip.MustParsePrefix("3fff::/20"),        // documentation
}

// public tells whether an address is one that anybody on the internet may have. Of IPv6 addresses that stand for one of
// IPv4, that one counts.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	switch {
	case nat64.Contains(a):
		return public(embedded(a, 12))
	case sixToFour.Contains(a):
		return public(embedded(a, 2))
	case a.Is6() && !globalUnicast6.Contains(a), a.IsPrivate(), !a.IsGlobalUnicast():
		return false
	}
	for _, network := range reserved {
		if network.Contains(a) {
			return false
		}
	}
	return true
}

// embedded returns the address of IPv4 that begins at byte start of one of IPv6.
func embedded(a netip.Addr, start int) netip.Addr {
	bytes := a.As16()
	return netip.AddrFrom4([4]byte(bytes[start : start+4]))
}
