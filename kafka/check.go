package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/postrider/postrider/operator"
)

// Check looks at everything that publishing to the topics needs: brokers that answer, a login that they accept, the
// right to write, and for each topic settings that keep what was acknowledged. It returns within about ten seconds
// when nothing answers.
func (s *Sink) Check(ctx context.Context, topics []string) []operator.Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	admin := kadm.NewClient(s.client)
	cluster, err := admin.BrokerMetadata(ctx)
	if err != nil {
		return []operator.Finding{operator.Problem("kafka brokers", err.Error(), hintFor(err))}
	}
	findings := []operator.Finding{operator.OK("kafka brokers", fmt.Sprintf("%d brokers of cluster %s", len(cluster.Brokers), cluster.Cluster))}
	for _, topic := range topics {
		findings = append(findings, s.checkTopic(ctx, admin, topic)...)
	}
	return findings
}

func (s *Sink) checkTopic(ctx context.Context, admin *kadm.Client, topic string) []operator.Finding {
	about := "topic " + topic
	details, err := admin.ListTopics(kadm.WithAuthorizedOps(ctx), topic)
	detail := details[topic]
	if err == nil {
		err = detail.Err
	}
	if err != nil {
		return []operator.Finding{operator.Problem(about, err.Error(), hintFor(err))}
	}
	configs, _ := admin.DescribeTopicConfigs(ctx, topic)
	findings := append(checkPartitions(about, detail, configs), checkSettings(about, topic, configs, s.config.MaxMessageBytes)...)
	if len(findings) == 0 {
		findings = []operator.Finding{operator.OK(about, fmt.Sprintf("%d partitions, %d replicas", len(detail.Partitions), detail.Partitions.NumReplicas()))}
	}
	return findings
}

func hintFor(err error) string {
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "correct the SASL mechanism, user or password"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "create the topic, or let this login see it"
	case errors.Is(err, kerr.InvalidTopicException):
		return "correct the topic of the route: letters, digits, dot, underscore and dash, at most 249"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return "let this login write and describe"
	default:
		return "start the brokers, or correct their addresses, TLS or SASL"
	}
}

// checkPartitions looks at what the cluster says of a topic at this moment.
func checkPartitions(about string, detail kadm.TopicDetail, configs kadm.ResourceConfigs) []operator.Finding {
	var findings []operator.Finding
	if ops := detail.AuthorizedOperations; len(ops) > 0 && !slices.Contains(ops, kadm.OpWrite) {
		findings = append(findings, operator.Problem(about, "this login may not write to it", hintFor(kerr.TopicAuthorizationFailed)))
	}
	minimum := configNumber(configs, detail.Topic, "min.insync.replicas")
	for _, p := range detail.Partitions.Sorted() {
		switch {
		case p.Err != nil:
			findings = append(findings, operator.Problem(about, fmt.Sprintf("partition %d: %v", p.Partition, p.Err), "see why its brokers are down"))
		case len(p.ISR) < minimum:
			findings = append(findings, operator.Problem(about, fmt.Sprintf("partition %d has %d in-sync replicas, and takes nothing below %d", p.Partition, len(p.ISR), minimum),
				"see why its brokers are down"))
		}
	}
	replicas := detail.Partitions.NumReplicas()
	switch {
	case replicas == 1:
		findings = append(findings, operator.Warning(about, "has one replica: acknowledged events are lost with its disk", "give it a replication factor of 3"))
	case minimum == 1:
		findings = append(findings, operator.Warning(about, "min.insync.replicas is 1: an acknowledged event may be on one broker only", "set min.insync.replicas to 2"))
	case minimum == replicas:
		findings = append(findings, operator.Warning(about, fmt.Sprintf("min.insync.replicas is %d of %d replicas: it takes nothing while one broker is down", minimum, replicas),
			"set min.insync.replicas below the replication factor"))
	}
	return findings
}

// checkSettings looks at settings of a topic that lose or refuse events. Settings that we may not read are skipped.
func checkSettings(about, topic string, configs kadm.ResourceConfigs, maxMessageBytes int) []operator.Finding {
	var findings []operator.Finding
	if strings.Contains(config(configs, topic, "cleanup.policy"), "compact") {
		findings = append(findings, operator.Warning(about, "is compacted: of each key only the newest event is kept", "set cleanup.policy to delete"))
	}
	if config(configs, topic, "unclean.leader.election.enable") == "true" {
		findings = append(findings, operator.Warning(about, "allows unclean leader elections, which lose acknowledged events", "set unclean.leader.election.enable to false"))
	}
	if limit := configNumber(configs, topic, "max.message.bytes"); limit > maxMessageBytes {
		findings = append(findings, operator.Warning(about, fmt.Sprintf("takes messages of %d bytes, but this sink sends none over %d", limit, maxMessageBytes),
			"raise the sink's largest message"))
	}
	return findings
}

// config returns a setting of a topic, empty when it was not told.
func config(configs kadm.ResourceConfigs, topic, key string) string {
	resource, err := configs.On(topic, nil)
	if err != nil || resource.Err != nil {
		return ""
	}
	for _, config := range resource.Configs {
		if config.Key == key {
			return config.MaybeValue()
		}
	}
	return ""
}

// configNumber returns a numeric setting of a topic, 0 when it was not told.
func configNumber(configs kadm.ResourceConfigs, topic, key string) int {
	number, _ := strconv.Atoi(config(configs, topic, key))
	return number
}
