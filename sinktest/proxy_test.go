package sinktest

import (
	"io"
	"net"
	"testing"
	"time"
)

// echo starts a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func wantAnswer(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	answer := make([]byte, len(text))
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != text {
		t.Fatalf("answer %q (%v), want %q", answer, err, text)
	}
}

func wantNoAnswer(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == io.EOF {
		t.Fatalf("read %d bytes (%v), want to wait", n, err)
	}
}

func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(make([]byte, 1))
	if timeout, ok := err.(net.Error); n != 0 || err == nil || ok && timeout.Timeout() {
		t.Fatalf("read %d bytes (%v), want the end of the connection", n, err)
	}
}

func TestProxyCut(t *testing.T) {
	p := NewProxy(t, echo(t))
	conn := dial(t, p)
	send(t, conn, "one")
	wantAnswer(t, conn, "one")
	p.Cut()
	wantEnd(t, conn)
	if conn, err := net.Dial("tcp", p.Addr); err == nil {
		conn.Close()
		t.Error("the proxy takes connections while it is cut")
	}
	p.Heal()
	conn = dial(t, p)
	send(t, conn, "two")
	wantAnswer(t, conn, "two")
}

func TestProxyFreeze(t *testing.T) {
	for name, freeze := range map[string]func(*Proxy){"both": (*Proxy).Freeze, "answers": func(p *Proxy) { p.HoldAnswersAfter(0) }} {
		t.Run(name, func(t *testing.T) {
			p := NewProxy(t, echo(t))
			conn := dial(t, p)
			freeze(p)
			send(t, conn, "one")
			wantNoAnswer(t, conn)
			p.Heal()
			wantAnswer(t, conn, "one")
			freeze(p)
			send(t, conn, "two")
			wantNoAnswer(t, conn)
			p.Cut()
			wantEnd(t, conn)
		})
	}
}

func TestProxyCutAfter(t *testing.T) {
	p := NewProxy(t, echo(t))
	conn := dial(t, p)
	cut := p.CutAfter(5)
	send(t, conn, "12345")
	wantAnswer(t, conn, "12345")
	select {
	case <-cut:
		t.Fatal("cut too early")
	default:
	}
	send(t, conn, "6")
	<-cut
	wantEnd(t, conn)
	p.Heal()
	conn = dial(t, p)
	send(t, conn, "and on it goes")
	wantAnswer(t, conn, "and on it goes")
}

func TestProxyHealEndsATroubleThatIsDue(t *testing.T) {
	p := NewProxy(t, echo(t))
	conn := dial(t, p)
	p.HoldAnswersAfter(5)
	p.Heal()
	send(t, conn, "more than five")
	wantAnswer(t, conn, "more than five")
}
