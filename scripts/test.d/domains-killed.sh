# shellcheck shell=sh
# Kills processes in the middle of their work; sourced by scripts/test.d/domains. Each process is killed later and later,
# until it ends before that. This simulates the death of a process, not a power cut.

# Checks that the database is sound, and that every domain is in a known state.
is_whole() {
    "$program" check >"$body" 2>&1 || fail "after $1: $(cat "$body")"
    "$program" domain list --json >"$body"
    jq -e '[.domains[].state] - ["pending_dns", "verified", "active", "certificate_delayed", "dns_changed"] == []' \
        "$body" >/dev/null || fail "after $1, a domain is in no state of the table: $(cat "$body")"
}

# killed_ever_later AFTERWARDS WORDS…: kills a command after 0.5 ms, 0.75 ms and so on, and runs AFTERWARDS each
# time.
killed_ever_later() {
    afterwards=$1 microseconds=500 killed=0
    shift
    while :; do
        rc=0
        timeout -s KILL "$((microseconds / 1000000)).$(printf %06d $((microseconds % 1000000)))" \
            "$program" "$@" >"$folder/killed.out" 2>&1 || rc=$?
        is_whole "petstore $*"
        "$afterwards"
        [ "$rc" = 137 ] || break
        killed=$((killed + 1))
        microseconds=$((microseconds * 3 / 2))
    done
    [ "$rc" = 0 ] || fail "petstore $* ended with $rc: $(cat "$folder/killed.out")"
    [ "$killed" -ge 3 ] || fail "petstore $* was killed $killed times only"
    echo "  petstore $1 $2: killed $killed times" >&2
}

# Checks that all files come from one deploy.
serves_one_deploy() {
    served=$(for file in 01 20 40; do inside -f "http://localhost/$file.txt" | head -n 1; done | sort -u)
    case $served in
        "$before" | "$after") ;;
        *) fail "a half deploy is served: $served" ;;
    esac
}

# deploy_folder TEXT: writes forty files that each begin with a text. Their deploy takes many transactions.
deploy_folder() {
    for file in $(seq -w 40); do
        yes "$1" | head -c 300000 >"$folder/site/$file.txt"
    done
}

nothing() {
    :
}

# After a killed `domain add` the domain may exist or not. Removes it, so that it can be added again.
add_again() {
    name=many$number.example.com
    [ "$rc" = 0 ] || [ -z "$(state "$name")" ] || done_with removed domain remove "$name"
}

# After a killed `domain add --www`, both domains and the redirect exist or none of them. Removes them, as above.
pair_is_whole() {
    pair=$("$program" domain list --json | jq '[(.domains[].name, .redirects[].from) | select(endswith("twin.example.com"))] |
        length')
    case $pair in
        0) ;;
        3) [ "$rc" = 0 ] || for name in twin www.twin; do done_with removed domain remove "$name.example.com"; done ;;
        *) fail "half a pair is there: $("$program" domain list --json)" ;;
    esac
}

# Kills the service while it checks domains whose record has just appeared or disappeared.
kill_verifying_service() {
    fields="Authorization: Bearer $1"
    # The last zone is the one with the records: a check of the start may read none other.
    for round in $(seq 13); do
        records=
        [ $((round % 2)) = 0 ] || records=$many
        zone example.com "$records"
        for number in 1 2 3 4; do
            curl -sf --max-time 20 -X POST -H "$fields" \
                "$admin/settings/api/domains/many$number.example.com/verify" >/dev/null || fail "no look is begun"
        done
        # Each round kills it a few requests later.
        for _ in $(seq "$round"); do
            curl -sf --max-time 20 -H "$fields" "$admin/settings/api/project" >"$body" || fail "no project is shown"
        done
        kill_service
        is_whole "a kill of the service"
        start_service
    done
}

kill_in_the_middle() {
    echo "domains: what is killed in its middle leaves all whole" >&2
    before= after="deploy 2"
    rm "$folder"/site/*
    deploy_folder "$after"
    done_with live site deploy "$folder/site"
    before=$after after="deploy 3"
    serves_one_deploy
    deploy_folder "$after"
    killed_ever_later serves_one_deploy site deploy "$folder/site"
    before=$after
    serves_one_deploy
    "$program" site list >"$body"
    # A deploy that was killed after its commit is listed too. Deploy 1 was another folder.
    awk 'NR > 1 && $1 != 1 && ($3 != 40 || $4 != 12000000) { exit 1 }' "$body" ||
        fail "half a deploy is listed: $(cat "$body")"

    many=
    for number in 1 2 3 4; do
        many="$many
many$number CNAME sites.example.net."
        killed_ever_later add_again domain add "many$number.example.com"
    done
    killed_ever_later pair_is_whole domain add twin.example.com --www
    for name in twin www.twin; do
        done_with removed domain remove "$name.example.com"
    done
    zone example.com "$many"
    killed_ever_later nothing domain verify many1.example.com
    kill_verifying_service "$("$program" key add killer --admin)"
    zone example.com "$many"
    for number in 1 2 3 4; do
        done_with verified domain verify "many$number.example.com"
        visit 200 "https://many$number.example.com/40.txt"
        wait_for "the domain to be active" is_in_state "many$number.example.com" active
        done_with removed domain remove "many$number.example.com"
    done
}
