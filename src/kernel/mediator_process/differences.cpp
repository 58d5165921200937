// Compares two definitions member by member and stops at the bound; prints nothing itself.
#include "kernel/mediator_process/differences.hpp"
#include <algorithm>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

namespace {

namespace json = wire::json;

class comparison {
public:
    explicit comparison(std::size_t most) : most_{most} {}
    void compare(const json::value* old, const json::value* fresh, const std::string& place) {
        if (found.size() >= most_) return;
        if (old == nullptr || fresh == nullptr) {
            found.push_back({place, text(old), text(fresh)});
            return;
        }
        if (*old == *fresh) return;
        if (old->as_object() != nullptr && fresh->as_object() != nullptr)
            return objects(*old, *fresh, place);
        if (old->as_array() != nullptr && fresh->as_array() != nullptr)
            return arrays(*old->as_array(), *fresh->as_array(), place);
        found.push_back({place, text(old), text(fresh)});
    }
    std::vector<difference> found;

private:
    [[nodiscard]] static auto text(const json::value* of) -> std::string {
        return of != nullptr ? json::to_text(*of) : std::string{};
    }
    void objects(const json::value& old, const json::value& fresh, const std::string& place) {
        for (const auto& [name, data] : *old.as_object())
            compare(&data, fresh.find(name), place + "/" + name);
        for (const auto& [name, data] : *fresh.as_object())
            if (old.find(name) == nullptr) compare(nullptr, &data, place + "/" + name);
    }
    void arrays(const json::array& old, const json::array& fresh, const std::string& place) {
        for (std::size_t i = 0; i < std::max(old.size(), fresh.size()); ++i)
            compare(i < old.size() ? &old[i] : nullptr, i < fresh.size() ? &fresh[i] : nullptr,
                    place + "/" + std::to_string(i));
    }
    std::size_t most_;
};

} // namespace

auto differences(const json::value& old, const json::value& fresh, std::size_t most)
    -> std::vector<difference> {
    comparison all{most};
    all.compare(&old, &fresh, {});
    return std::move(all.found);
}

} // namespace glove::kernel
