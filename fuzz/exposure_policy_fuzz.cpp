// Whatever the bytes: an exposure policy that is accepted has a text that reads as itself, with its
// lists sorted; a request that is accepted has one text, and a policy that allows it allows it
// again once it is a fact. A record that is accepted is, byte for byte, the one that is written.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <glove/supervisor/exposure_ledger.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;

void require(bool holds) {
    if (!holds) std::abort();
}

template<class T> auto accepted(const result<T>& out) -> bool {
    if (out) return true;
    const auto& detail = out.error().detail;
    require(!out.error().step.empty() && !detail.empty());
    require(std::all_of(detail.begin(), detail.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    return false;
}

void check_rules(const exposure_rules& rules) {
    const auto text = exposure_rules_text(rules);
    require(text.has_value() && parse_exposure_rules(*text).value() == rules);
    for (const auto& root : rules.roots) {
        require(rules.find_root(root.root_id) == &root);
        require(std::is_sorted(root.allowed_modes.begin(), root.allowed_modes.end()));
        const create_exposure all{"e",
                                  root.root_id,
                                  root.host_root + "/x",
                                  "label",
                                  root.allowed_modes,
                                  root.max_ttl_secs,
                                  root.allowed_runtime_template_ids};
        if (!accepted(normalised(all))) continue; // too long a path
        require(check_allowed(rules, all).has_value());
        const auto record = exposure_ledger{}.next_create("k", all, {}, 0);
        if (!accepted(record)) continue; // beyond the end of time
        const auto& made = std::get<exposure_created>(record->fact).descriptor;
        require(check_allowed(rules, made).has_value());
        exposure_ledger ledger;
        require(ledger.apply(*record).has_value());
        require(decode_exposure_record(encode(*record).value()).value() == *record);
    }
}

void check_request(const create_exposure& what) {
    const auto text = encode(what);
    require(text.has_value() && decode_create(*text).value() == what);
    require(request_digest("k", what).has_value());
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    if (const auto rules = parse_exposure_rules(text); accepted(rules)) check_rules(*rules);
    if (const auto what = decode_create(text); accepted(what)) check_request(*what);
    if (const auto what = decode_revoke(text); accepted(what)) {
        require(decode_revoke(encode(*what).value()).value() == *what);
    }
    if (const auto entry = decode_catalog_entry(text); accepted(entry)) {
        require(decode_catalog_entry(encode(*entry).value()).value() == *entry);
    }
    if (const auto record = decode_exposure_record(text); accepted(record)) {
        require(encode(*record).value() == text);
        exposure_ledger ledger;
        (void)ledger.apply(*record);
    }
    return 0;
}
