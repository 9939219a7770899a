# shellcheck shell=sh
# The environment of the tests of domains, sourced by scripts/test.d/domains: the service, an authoritative DNS server
# (Knot), and Caddy with a certificate authority of its own, all on free ports of loopback addresses.

serial=0
body=$folder/body head=$folder/head err=$folder/err
export PETSTORE_DATABASE="$folder/petstore.db" PETSTORE_PLATFORM_HOST=sites.example.net TMPDIR="$folder"

# Calls the service directly, without Caddy.
inside() {
    curl -s --max-time 20 --unix-socket "$folder/http.sock" "$@"
}

start_service() {
    start service "$program" --listen "unix:$folder/http.sock" --admin "$admin_port"
    service=$started
    wait_for "the service" inside -f http://localhost/readyz
    wait_for "the admin address" curl -sf "$admin/metrics"
}

stop_service() {
    kill "$service"
    wait "$service" || fail "the service ended with $?"
    processes=$(echo "$processes " | sed "s/ $service / /")
}

kill_service() {
    kill -9 "$service"
    wait "$service" 2>/dev/null || true
    # Another process may have its id by the end.
    processes=$(echo "$processes " | sed "s/ $service / /")
}

# write_zone NAME RECORDS: writes a zone with these records and those that every zone needs.
write_zone() {
    serial=$((serial + 1))
    cat >"$folder/dns/$1.zone" <<END
\$TTL 3600
\$ORIGIN $1.
@ SOA ns hostmaster $serial 3600 3600 3600 3600
@ NS ns
ns A 127.0.0.1
$2
END
}

# zone NAME RECORDS: replaces the records of a zone.
zone() {
    write_zone "$1" "$2"
    knotc -s "$folder/dns/knot.sock" -b zone-reload "$1" >"$folder/knotc.log" 2>&1 || fail "the zone $1 is not loaded"
}

start_dns() {
    mkdir "$folder/dns"
    write_zone example.net "$platform"
    write_zone example.com ''
    write_zone zone.example.com ''
    # The parent, whose CAA records count too.
    write_zone com ''
    dns_port=$(free_port)
    cat >"$folder/dns/knot.conf" <<END
server:
    rundir: $folder/dns
    listen: 127.0.0.1@$dns_port
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
control:
    listen: $folder/dns/knot.sock
log:
  - target: stderr
    any: warning
database:
    storage: $folder/dns
template:
  - id: default
    storage: $folder/dns
    file: "%s.zone"
    journal-content: none
    zonefile-load: whole
zone:
  - domain: com
  - domain: example.com
  - domain: zone.example.com
  - domain: example.net
END
    start knot knotd -c "$folder/dns/knot.conf"
    wait_for "the DNS server" knotc -s "$folder/dns/knot.sock" status
    export PETSTORE_RESOLVER="127.0.0.1:$dns_port"
}

# Starts Caddy with the Caddyfile; only ports, paths and the authority are changed.
start_caddy() {
    sed "s|127.0.0.1:8080|unix/$folder/http.sock|; s|127.0.0.1:8090|127.0.0.1:$admin_port|
        0,/^{/s|^{|{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n\thttp_port $plain_port\n\thttps_port $tls_port|" \
        scripts/deploy/Caddyfile-domains >"$folder/Caddyfile"
    start caddy env XDG_DATA_HOME="$folder" XDG_CONFIG_HOME="$folder" HOME="$folder" \
        caddy run --adapter caddyfile --config "$folder/Caddyfile"
    authority=$folder/caddy/pki/authorities/local/root.crt
    wait_for "Caddy's authority" test -s "$authority"
    wait_for "Caddy" through_caddy -f https://petstore.sites.example.net/healthz
    visit 200 https://petstore.sites.example.net/healthz
}

through_caddy() {
    curl -s --max-time 20 --cacert "$authority" --connect-to "::127.0.0.1:$tls_port" -o "$body" -D "$head" \
        -w '%{http_code}' "$@"
}

# visit STATUS URL CURL-WORDS…: sends one request through Caddy, which must get this status.
visit() {
    expected=$1 url=$2
    shift 2
    status=$(through_caddy "$@" "$url") || {
        rc=$?
        # A certificate is valid from the second in which it was made. OpenSSL's clock can be a tick behind, and then
        # refuses one that was made at the very start of a second (curl: 60).
        [ "$rc" = 60 ] || fail "no response (curl: $rc) to $url"
        status=$(through_caddy "$@" "$url") || fail "no response (curl: $?) to $url"
    }
    [ "$status" = "$expected" ] || fail "$status in place of $expected for $url: $(cat "$body")"
}

# Checks that TLS fails, as the name gets no certificate.
has_no_certificate() {
    rc=0
    curl -s --max-time 20 --cacert "$authority" --connect-to "::127.0.0.1:$tls_port" "https://$1/" >"$body" || rc=$?
    [ "$rc" = 35 ] || fail "curl ended with $rc, and not for want of TLS, for $1"
}

# is_error STATUS CODE: checks that the last response through Caddy was a refusal by the service.
is_error() {
    jq -e --arg code "$2" ".status == $1 and .code == \$code and (.message | length > 0)" "$body" >/dev/null ||
        fail "no $1 $2: $(cat "$body")"
}

# done_with PATTERN WORDS…: runs a command, which must succeed and print a match.
done_with() {
    pattern=$1
    shift
    "$program" "$@" >"$body" 2>"$err" || fail "petstore $*: $(cat "$err")"
    grep -q -- "$pattern" "$body" || fail "petstore $* does not say '$pattern': $(cat "$body")"
}

# refused_with CODE PATTERN WORDS…: runs a command, which must be refused in one line.
refused_with() {
    code=$1 pattern=$2 rc=0
    shift 2
    "$program" "$@" >"$body" 2>"$err" || rc=$?
    [ "$rc" = 1 ] || fail "petstore $* ended with $rc in place of 1: $(cat "$err")"
    [ "$(wc -l <"$err")" = 1 ] || fail "petstore $* says more than a line: $(cat "$err")"
    grep "($code)\$" "$err" | grep -q -- "$pattern" || fail "petstore $* says no $code with '$pattern': $(cat "$err")"
}

# state NAME: prints the state of a domain.
state() {
    "$program" domain list --json | jq -r --arg name "$1" '.domains[] | select(.name == $name).state'
}

is_in_state() {
    [ "$(state "$1")" = "$2" ]
}

# may_have_certificate STATUS NAME: checks the answer that Caddy gets.
may_have_certificate() {
    status=$(curl -s --max-time 20 -o "$body" -w '%{http_code}' "$admin/internal/tls-allowed?domain=$2")
    [ "$status" = "$1" ] || fail "tls-allowed says $status in place of $1 for $2"
}
