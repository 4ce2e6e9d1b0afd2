package sinktest

import (
	"net"
	"sync"
	"testing"
)

// Proxy is a network between a sink and its server that can be broken. The sink connects to Addr.
type Proxy struct {
	Addr string // host:port

	server string

	mu       sync.Mutex
	changed  *sync.Cond
	listener net.Listener // nil while cut
	conns    map[net.Conn]bool
	requests bool   // what clients send moves on
	answers  bool   // what the server sends moves on
	budget   int    // bytes that may pass to the server before the trouble
	trouble  func() // called once with the lock held; nil when none is due
	running  sync.WaitGroup
}

// NewProxy starts a proxy to the server at that host and port. It ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	p := &Proxy{server: server, conns: make(map[net.Conn]bool), requests: true, answers: true}
	p.changed = sync.NewCond(&p.mu)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Addr = listener.Addr().String()
	p.serve(listener)
	t.Cleanup(func() {
		p.Cut()
		p.running.Wait()
	})
	return p
}

// Cut ends the connections and refuses new ones. What was held back is lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

// CutAfter cuts when more than that many bytes have come from clients. The channel is closed when it has.
func (p *Proxy) CutAfter(bytes int) <-chan struct{} {
	cut := make(chan struct{})
	p.after(bytes, func() {
		p.cutLocked()
		close(cut)
	})
	return cut
}

// Freeze keeps the connections and takes new ones, but nothing moves any more.
func (p *Proxy) Freeze() { p.setMoving(false, false) }

// HoldAnswersAfter lets only requests pass when more than that many bytes have come from clients. The request that
// exceeds it is not answered.
func (p *Proxy) HoldAnswersAfter(bytes int) {
	p.after(bytes, func() { p.answers = false })
}

func (p *Proxy) after(bytes int, trouble func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget, p.trouble = bytes, trouble
}

// Heal ends every trouble, also one that is due after some bytes more. What was held back moves on.
func (p *Proxy) Heal() {
	p.setMoving(true, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = nil
	for p.listener == nil {
		if listener, err := net.Listen("tcp", p.Addr); err == nil {
			p.serve(listener)
		}
	}
}

func (p *Proxy) setMoving(requests, answers bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests, p.answers = requests, answers
	p.changed.Broadcast()
}

func (p *Proxy) cutLocked() {
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for conn := range p.conns {
		conn.Close()
	}
	clear(p.conns)
	p.changed.Broadcast()
}

// serve is called with the lock held, or before the proxy is in use.
func (p *Proxy) serve(listener net.Listener) {
	p.listener = listener
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.connect(listener, client)
		}
	})
}

func (p *Proxy) connect(listener net.Listener, client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != listener { // cut in the meantime
		client.Close()
		server.Close()
		return
	}
	p.conns[client], p.conns[server] = true, true
	p.running.Go(func() { p.pump(server, client, &p.requests) })
	p.running.Go(func() { p.pump(client, server, &p.answers) })
}

// pump moves bytes while moving is set, until one side ends.
func (p *Proxy) pump(to, from net.Conn, moving *bool) {
	defer p.end(to, from)
	buffer := make([]byte, 8<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !p.mayMove(from, n, moving) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// mayMove waits until bytes may move. It is false when the connection has been cut.
func (p *Proxy) mayMove(from net.Conn, n int, moving *bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !*moving && p.conns[from] {
		p.changed.Wait()
	}
	if p.trouble != nil && moving == &p.requests {
		if p.budget -= n; p.budget < 0 {
			p.trouble()
			p.trouble = nil
		}
	}
	return p.conns[from]
}

func (p *Proxy) end(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
		delete(p.conns, conn)
	}
	p.changed.Broadcast()
}
