package servers

import (
	"fmt"
	"net"
	"testing"
)

func TestEachCallGetsAPortOfItsOwn(t *testing.T) {
	seen := make(map[int]bool)
	for range triples / 4 {
		port := FreePort(t)
		if seen[port] || seen[port+1] || seen[port+2] {
			t.Fatalf("port %d was given before", port)
		}
		seen[port] = true
	}
}

func TestAPortThatIsTakenIsNotGiven(t *testing.T) {
	port := firstPort + 3*int((nextTriple.Load()+1)%triples)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+2))
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0") // somebody else has it, which does as well
		if err != nil {
			t.Fatal(err)
		}
	}
	defer listener.Close()
	if got := FreePort(t); got == port {
		t.Errorf("got %d, of whose next two one is taken", got)
	}
}
