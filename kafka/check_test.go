package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/postrider/postrider/operator"
)

func wantFinding(t *testing.T, findings []operator.Finding, level operator.Level, words string) {
	t.Helper()
	for _, f := range findings {
		if f.Level == level && strings.Contains(f.Subject+" "+f.Message, words) {
			if f.Hint == "" && level != operator.LevelOK {
				t.Errorf("finding %q has no hint", f.Message)
			}
			return
		}
	}
	t.Errorf("Check found %+v, want %s: %s", findings, level, words)
}

func TestCheckRealTopics(t *testing.T) {
	sink := openSink(t, Config{Brokers: brokers(t)})
	plain := newTopic(t, 3)
	odd := newTopic(t, 1, "cleanup.policy", "compact", "unclean.leader.election.enable", "true", "max.message.bytes", "5000000")
	findings := sink.Check(testContext(t), []string{plain, odd, plain + "-missing", "no spaces"})
	wantFinding(t, findings, operator.LevelOK, "1 brokers")
	wantFinding(t, findings, operator.LevelWarning, plain+" has one replica")
	wantFinding(t, findings, operator.LevelWarning, odd+" is compacted")
	wantFinding(t, findings, operator.LevelWarning, odd+" allows unclean")
	wantFinding(t, findings, operator.LevelWarning, odd+" takes messages of 5000000 bytes")
	wantFinding(t, findings, operator.LevelError, plain+"-missing UNKNOWN_TOPIC")
	wantFinding(t, findings, operator.LevelError, "no spaces INVALID_TOPIC")
}

func TestCheckReplicas(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3))
	for topic, minimum := range map[string]string{"safe": "2", "weak": "1", "strict": "3", "short": "4"} {
		if err := c.CreateTopic(topic, 1, map[string]string{"min.insync.replicas": minimum}); err != nil {
			t.Fatal(err)
		}
	}
	findings := openSink(t, Config{Brokers: c.ListenAddrs()}).Check(testContext(t), []string{"safe", "weak", "strict", "short"})
	wantFinding(t, findings, operator.LevelOK, "safe 1 partitions, 3 replicas")
	wantFinding(t, findings, operator.LevelWarning, "weak min.insync.replicas is 1")
	wantFinding(t, findings, operator.LevelWarning, "strict min.insync.replicas is 3 of 3")
	wantFinding(t, findings, operator.LevelError, "short partition 0 has 3 in-sync replicas, and takes nothing below 4")
}

func TestCheckRights(t *testing.T) {
	describe := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: orders, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationDescribe, Allow: true}
	c := newCluster(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "relay", "right", describe))
	login := SASL{Mechanism: MechanismPlain, User: "relay", Password: "right"}
	findings := openSink(t, Config{Brokers: c.ListenAddrs(), SASL: login}).Check(testContext(t), []string{orders, payments})
	wantFinding(t, findings, operator.LevelError, orders+" this login may not write")
	wantFinding(t, findings, operator.LevelError, payments+" "+kerr.TopicAuthorizationFailed.Message)

	login.Password = "wrong"
	findings = openSink(t, Config{Brokers: c.ListenAddrs(), SASL: login}).Check(testContext(t), []string{orders})
	wantFinding(t, findings, operator.LevelError, "kafka brokers")
}

func TestCheckUnreachable(t *testing.T) {
	c := newCluster(t)
	addresses := c.ListenAddrs()
	c.Close()
	findings := openSink(t, Config{Brokers: addresses}).Check(testContext(t), []string{orders})
	if len(findings) != 1 {
		t.Errorf("Check found %+v, want only that there are no brokers", findings)
	}
	wantFinding(t, findings, operator.LevelError, "kafka brokers")
}
