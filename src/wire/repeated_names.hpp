// Finds a name that stands twice among the members of one object.
//
// Few names are compared with each other; many go through a hash table whose memory is reused. When
// names collide more than chance allows, they are sorted instead: the work is n log n whatever they
// are.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <sys/auxv.h>
#include <vector>

namespace glove::wire::json {

// A key of the process makes the hashes unforeseeable.
struct keyed_hash {
    std::uint64_t key[2] = {0x9e3779b97f4a7c15ULL, 0xd1b54a32d192ed03ULL};

    keyed_hash() noexcept {
        if (const auto random = ::getauxval(AT_RANDOM); random != 0)
            std::memcpy(key, std::bit_cast<const void*>(random), sizeof key);
    }
    [[nodiscard]] auto operator()(std::string_view name) const noexcept -> std::uint64_t {
        std::uint64_t out = key[0] ^ name.size();
        for (; name.size() > 8; name.remove_prefix(8)) out = mix(out ^ word(name, 8), key[1]);
        out = mix(out ^ word(name, name.size()), key[1]);
        return mix(out, key[0] | 1U);
    }

private:
    [[nodiscard]] static auto word(std::string_view name, std::size_t size) noexcept
        -> std::uint64_t {
        std::uint64_t out = 0;
        if (size != 0) std::memcpy(&out, name.data(), size);
        return out;
    }
    // The key's odd half never makes the product vanish for one input only.
    [[nodiscard]] static auto mix(std::uint64_t a, std::uint64_t b) noexcept -> std::uint64_t {
        out_type product = out_type{a} * (b | 1U);
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
    }
    __extension__ using out_type = unsigned __int128;
};

template<class Hash = keyed_hash> class repeated_names {
public:
    // One that appears twice, or null.
    [[nodiscard]] auto find(std::span<const std::string_view> names) -> const std::string_view* {
        if (names.size() <= few) return compare_all(names);
        const std::string_view* found = nullptr;
        return look_up(names, found) ? found : sort_all(names);
    }

    // Gives memory back that only a large object needed.
    void forget() {
        constexpr std::size_t kept = 4096;
        if (table_.capacity() > kept) table_ = {};
        if (sorted_.capacity() > kept) sorted_ = {};
    }

private:
    static constexpr std::size_t few = 12;
    struct entry {
        std::uint64_t hash = 0;
        const std::string_view* name = nullptr;
    };

    [[nodiscard]] static auto compare_all(std::span<const std::string_view> names)
        -> const std::string_view* {
        for (std::size_t i = 1; i < names.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (names[i] == names[j]) return &names[i];
        return nullptr;
    }

    // False when too many names fall together to go on.
    [[nodiscard]] auto look_up(std::span<const std::string_view> names,
                               const std::string_view*& found) -> bool {
        const auto size = std::bit_ceil(names.size() * 2);
        table_.assign(size, entry{});
        auto steps = names.size() * 8;
        for (const auto& name : names) {
            const auto hash = hash_(name);
            auto at = hash & (size - 1);
            for (; table_[at].name != nullptr; at = (at + 1) & (size - 1)) {
                if (table_[at].hash == hash && *table_[at].name == name) {
                    found = &name;
                    return true;
                }
                if (steps-- == 0) return false;
            }
            table_[at] = {hash, &name};
        }
        return true;
    }

    [[nodiscard]] auto sort_all(std::span<const std::string_view> names)
        -> const std::string_view* {
        sorted_.clear();
        for (const auto& name : names) sorted_.push_back(&name);
        std::ranges::sort(sorted_, [](const auto* a, const auto* b) { return *a < *b; });
        const auto found = std::ranges::adjacent_find(
            sorted_, [](const auto* a, const auto* b) { return *a == *b; });
        return found == sorted_.end() ? nullptr : *found;
    }

    Hash hash_;
    std::vector<entry> table_;
    std::vector<const std::string_view*> sorted_;
};

} // namespace glove::wire::json
