// The canonical text of what a run may reach: the order of the options has no meaning in it.
#include <algorithm>
#include <glove/container/plan.hpp>
#include <glove/host/homes.hpp>
#include <glove/wire/digest.hpp>

namespace glove::host {

namespace {

// A path that cannot be found is refused by the plan; until then it is what was asked for.
[[nodiscard]] auto real_of(const std::string& path) -> std::string {
    auto found = container::resolve(path);
    return found ? std::move(found->real) : path;
}

// What a program consists of is not named one by one: an update of the agent must not keep a second
// run out of the home of the first. Whether the programs of PATH are offered counts.
[[nodiscard]] auto offers_path(const container::profile& wish) -> bool {
    return std::ranges::any_of(wish.grants, [](const container::grant& each) {
        return each.for_program && each.flag == "--path";
    });
}

struct sorted_words {
    const char* option;
    std::vector<std::string> words;
};

[[nodiscard]] auto lists_of(const container::profile& wish) -> std::vector<sorted_words> {
    std::vector<sorted_words> out{{"--workspace", {}}, {"--read", {}},      {"--write", {}},
                                  {"--hide", {}},      {"--env", {}},       {"--egress-allow", {}},
                                  {"--publish", {}},   {"--unprotect", {}}, {"--ssh-agent", {}},
                                  {"--path", {}}};
    if (wish.workspace) out[0].words.push_back(real_of(*wish.workspace));
    for (const auto& each : wish.grants) {
        if (each.for_program) continue;
        out[each.mode == container::access::read ? 1 : 2].words.push_back(real_of(each.path));
    }
    for (const auto& each : wish.hidden) out[3].words.push_back(real_of(each));
    for (const auto& each : wish.environment) out[4].words.push_back(each.first);
    out[5].words = wish.egress.allow;
    for (const auto port : wish.egress.publish) out[6].words.push_back(std::to_string(port));
    for (const auto& each : wish.unprotected) out[7].words.push_back(real_of(each));
    if (wish.ssh_agent) out[8].words.push_back(*wish.ssh_agent);
    if (offers_path(wish)) out[9].words.emplace_back("on");
    for (auto& list : out) std::ranges::sort(list.words);
    return out;
}

} // namespace

auto grants_of(const container::profile& wish) -> result<run_grants> {
    constexpr std::size_t longest = 400;
    run_grants out;
    wire::digest_encoder encoder;
    encoder.str("glove.run_grants.v2").str(to_string(wish.network));
    encoder.u32(wish.egress.connections);
    out.words = "--net " + std::string{to_string(wish.network)};
    for (const auto& list : lists_of(wish)) {
        encoder.str(list.option).list(list.words);
        for (const auto& word : list.words)
            out.words.append(" ").append(list.option).append(" ").append(word);
    }
    if (out.words.size() > longest) out.words.resize(longest);
    GLOVE_TRY(out.digest, encoder.sha256_hex());
    return out;
}

} // namespace glove::host
