package webhook

import (
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

func TestPublicAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "100.63.255.255": true, "100.128.0.0": true, "172.15.0.1": true, "172.32.0.1": true,
		"2606:4700:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::8.8.8.8": true, "2002:808:808::1": true,

		"127.0.0.1": false, "127.255.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false,
		"0.0.0.0": false, "0.1.2.3": false, "::": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "fd00::1": false,
		"169.254.1.1": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false,
		"169.254.169.254": false, "fd00:ec2::254": false, "100.100.100.200": false, "192.0.0.192": false, "168.63.129.16": false,
		"100.64.0.1": false, "100.127.255.255": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "240.0.0.1": false,
		"64:ff9b::10.0.0.1": false, "64:ff9b:1::8.8.8.8": false, "2002:7f00:1::1": false, "2001:0:1::1": false,
		"192.0.2.1": false, "198.18.0.1": false, "198.51.100.1": false, "203.0.113.1": false, "2001:db8::1": false, "100::1": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: public is %v, want %v", address, got, want)
		}
	}
}

// TestPrivateAddressIsRefused goes to loopback by its address and by a name.
func TestPrivateAddressIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var connections atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		sink := openStrict(t, Config{URL: "http://" + net.JoinHostPort(strings.Trim(host, "[]"), port)})
		wantOutcome(t, publishOne(t, sink, message("1")), relay.ClassUnavailable, "not public")
		if findings := sink.Check(testContext(t), nil); findings[0].Level != operator.LevelError || !strings.Contains(findings[0].Message, "not public") {
			t.Errorf("%s: Check found %+v", host, findings)
		}
	}
	if n := connections.Load(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}

// TestNoProxy names a proxy in the environment. The address that is dialled, and refused, is the receiver's all the same.
func TestNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:9")
	t.Setenv("http_proxy", "http://127.0.0.1:9")
	sink := openStrict(t, Config{URL: "http://192.0.2.1/"})
	wantOutcome(t, publishOne(t, sink, message("1")), relay.ClassUnavailable, "address 192.0.2.1 is not public")
}
