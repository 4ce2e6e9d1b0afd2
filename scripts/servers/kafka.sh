# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# Apache Kafka: one process as broker and controller (KRaft). Jars by Maven from deploy/kafka/pom.xml.
# Besides PORT it listens on PORT+1 and PORT+2, on loopback addresses of its own.
#
# Variations for a private server, from the environment of launch:
#   KAFKA_MESSAGE_MAX_BYTES  the broker's limit for a batch
#   KAFKA_SASL               plain or scram: clients log in as postrider with the password postrider
#   KAFKA_TLS                1: clients use TLS and trust DIR/ca.pem
#   KAFKA_ADVERTISED         the host:port that clients are told, such as that of a proxy
#   KAFKA_ACLS               1: it obeys ACLs; where there are none, everything is allowed

kafka_variable=POSTRIDER_TEST_KAFKA
kafka_port=25492
kafka_needs=(java=default-jre-headless mvn=maven openssl=openssl kcat=kcat)
kafka_stop_signal=TERM

kafka_address() { # PORT
  echo "127.0.0.1:$1"
}

kafka_install() {
  [[ ! -e $kafka_classpath ]] || return 0
  say 'kafka: downloading'
  quietly "$cache/maven.log" mvn --batch-mode --file "$kafka_pom" -Dmaven.repo.local="$cache/maven" \
    dependency:build-classpath -Dmdep.outputFile="$kafka_classpath.part"
  mv "$kafka_classpath.part" "$kafka_classpath"
}

kafka_prepare() { # DIR PORT
  [[ ${KAFKA_TLS-} != 1 || -e $1/ca.pem ]] || make_kafka_certificate "$1"
  kafka_server_properties "$1" "$2" >"$1/server.properties"
  [[ -e $1/formatted ]] || format_kafka "$1"
}

# The flags favour a quick start over the last bit of throughput.
kafka_command() { # DIR PORT
  command=(env CLASSPATH="$(<"$kafka_classpath")" java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
    -Dlog4j2.level=INFO kafka.Kafka "$1/server.properties")
}

# A broker that is not in service yet knows no brokers, not even itself. kcat asks on the broker's own listener,
# which needs no login.
kafka_answers() { # DIR PORT
  [[ $(kcat -b "127.0.0.2:$(($2 + 1))" -L -m 2 2>/dev/null) == *'broker 1 at'* ]]
}

# The list of jars is complete once it exists; another pom means another list.
kafka_pom=$scripts/../deploy/kafka/pom.xml
kafka_classpath=$cache/kafka-$(cksum <"$kafka_pom" | cut -d ' ' -f 1).classpath

# Users for SCRAM have to be there before the first start.
format_kafka() { # DIR
  rm -rf "$1/data"
  CLASSPATH=$(<"$kafka_classpath") quietly "$1/format.log" java -XX:TieredStopAtLevel=1 kafka.tools.StorageTool format \
    --cluster-id cG9zdHJpZGVyLXRlc3QtMQ --config "$1/server.properties" \
    --add-scram 'SCRAM-SHA-256=[name=postrider,password=postrider]' \
    --add-scram 'SCRAM-SHA-512=[name=postrider,password=postrider]'
  touch "$1/formatted"
}

# The certificate is its own authority; the key comes first in the file that the broker reads.
make_kafka_certificate() { # DIR
  quietly "$1/openssl.log" openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=127.0.0.1 \
    -addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout "$1/key.pem" -out "$1/ca.pem"
  cat "$1/key.pem" "$1/ca.pem" >"$1/server.pem"
}

kafka_protocol() {
  local transport=PLAINTEXT
  [[ ${KAFKA_TLS-} != 1 ]] || transport=SSL
  echo "${KAFKA_SASL:+SASL_}$transport"
}

kafka_mechanism() {
  case ${KAFKA_SASL-} in
    '') ;;
    plain) echo PLAIN ;;
    scram) echo SCRAM-SHA-256 ;;
    *) fail "KAFKA_SASL is plain or scram, not '$KAFKA_SASL'" ;;
  esac
}

# The broker talks to itself on a plain listener of its own, so that clients alone meet SASL and TLS. A single
# node must not ask for replicas, and tests must not wait for consumer groups.
kafka_server_properties() { # DIR PORT
  cat <<PROPERTIES
process.roles=broker,controller
node.id=1
listeners=CLIENT://127.0.0.1:$2,BROKER://127.0.0.2:$(($2 + 1)),CONTROLLER://127.0.0.3:$(($2 + 2))
advertised.listeners=CLIENT://${KAFKA_ADVERTISED:-127.0.0.1:$2},BROKER://127.0.0.2:$(($2 + 1))
listener.security.protocol.map=CLIENT:$(kafka_protocol),BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.3:$(($2 + 2))
log.dirs=$1/data
auto.create.topics.enable=false
message.max.bytes=${KAFKA_MESSAGE_MAX_BYTES:-1048588}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=500
group.consumer.min.session.timeout.ms=500
PROPERTIES
  [[ -z ${KAFKA_SASL-} ]] || cat <<PROPERTIES
sasl.enabled.mechanisms=$(kafka_mechanism)
listener.name.client.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_postrider="postrider";
listener.name.client.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
PROPERTIES
  [[ ${KAFKA_ACLS-} != 1 ]] || cat <<PROPERTIES
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
PROPERTIES
  [[ ${KAFKA_TLS-} != 1 ]] || cat <<PROPERTIES
listener.name.client.ssl.keystore.type=PEM
listener.name.client.ssl.keystore.location=$1/server.pem
PROPERTIES
}
