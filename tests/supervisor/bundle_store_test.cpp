// Objects and bundles: known digests, everything that is not quite an object, and the bounds.
#include "supervisor/bundle_fields.hpp"
#include <glove/wire/crypto.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <support/malformed.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;

auto sha(std::string_view bytes) -> std::string {
    return wire::to_hex(wire::sha256(bytes).value());
}

auto entry(std::string key, std::string content) -> bundle_entry {
    auto digest = sha(content);
    return {std::move(key), bundle_kind::skill, std::move(digest), std::move(content)};
}
auto bundle(std::vector<bundle_entry> entries) -> bundle_document {
    return {1, "bafy-codex", std::string(64, 'a'), std::move(entries)};
}

struct library {
    test::folder place;
    std::string root = place.directory("library", 0700);

    auto put(const std::string& text, ::mode_t mode = 0600) const -> std::string {
        auto digest = sha(text);
        (void)place.file("library/" + digest + ".json", text, mode);
        return digest;
    }
    [[nodiscard]] auto path(const std::string& digest) const -> std::string {
        return root + "/" + digest + ".json";
    }
    [[nodiscard]] auto store() const -> bundle_store { return bundle_store::open(root).value(); }
};

auto rules() -> session_rules {
    session_rules out;
    out.library_projection_destinations = {{"libraries", "/opt/sage/library-bundles"},
                                           {"others", "/opt/others"},
                                           {"same", "/opt/others"}};
    return out;
}
template<class T> auto step_of(const result<T>& of) -> std::string_view {
    return of ? std::string_view{"none"} : of.error().step;
}

constexpr std::string_view skill = "# Sage core\n";
constexpr std::string_view skill_digest =
    "a8095aa5472d84253e87441d7438235d2b13c13e09de63cbb88609931b8b8947";
constexpr std::string_view known_bundle =
    "9bb303d4c5a0489015ac301dabc40b504fe54b7586a02d4ea8da0aacc3b2cee4";

TEST(bundle_document, the_digests_that_the_other_side_has) {
    EXPECT_EQ(sha(skill), skill_digest);
    const auto text = encode(bundle({entry("sage-core", std::string{skill})})).value();
    EXPECT_EQ(sha(text), known_bundle);
    EXPECT_EQ(decode_bundle(text).value().entries.front().content, skill);
    EXPECT_EQ(encode(decode_bundle(text).value()).value(), text);
}

TEST(bundle_document, every_member_is_held_to_its_rule) {
    const auto good = encode(bundle({entry("one", "1")})).value();
    const auto whole = wire::json::read(good).value();
    const auto judge = [](const std::string& text) -> std::optional<error> {
        auto got = decode_bundle(text);
        return got ? std::nullopt : std::optional{got.error()};
    };
    test::expect_each_to_be_refused(bundle_fields, whole, "", judge);
    test::expect_each_to_be_refused(bundle_entry_fields, whole, "entries/0", judge);
}

TEST(bundle_document, only_skills) {
    auto text = encode(bundle({entry("one", "1")})).value();
    text.replace(text.find("skill"), 5, "prompt");
    const auto refused = decode_bundle(text);
    EXPECT_EQ(step_of(refused), "wire.choice");
    EXPECT_EQ(refused.error().detail.substr(0, 17), "$.entries[0].kind");
}

TEST(bundle_document, a_content_has_its_digest) {
    auto wrong = bundle({entry("one", "1"), entry("two", "the content of it")});
    wrong.entries[1].content_digest = sha("2");
    EXPECT_EQ(step_of(encode(wrong)), "bundle.content");
    auto text = encode(bundle({entry("one", "the content of it")})).value();
    text.replace(text.find("the content"), 3, "thy");
    const auto refused = decode_bundle(text);
    EXPECT_EQ(step_of(refused), "bundle.content");
    EXPECT_EQ(refused.error().detail.find("content of it"), std::string::npos);
}

TEST(bundle_document, a_key_appears_once) {
    EXPECT_TRUE(encode(bundle({entry("one", "1"), entry("One", "1")})));
    EXPECT_EQ(step_of(encode(bundle({entry("one", "1"), entry("one", "2")}))), "bundle.key");
}

TEST(bundle_store, gives_what_has_the_digest) {
    const library at;
    const auto digest = at.put(encode(bundle({entry("one", "1")})).value());
    const auto object = at.store().fetch(digest);
    ASSERT_TRUE(object) << object.error().detail;
    EXPECT_EQ(sha(object->content), digest);
    EXPECT_TRUE(check_unchanged(*object));
}

TEST(bundle_store, a_root_that_is_not_the_callers_alone_is_refused) {
    const library at;
    EXPECT_TRUE(bundle_store::open(at.root));
    EXPECT_EQ(step_of(bundle_store::open("library")), "bundle.root");
    EXPECT_EQ(step_of(bundle_store::open(at.root + "/../library")), "bundle.root");
    EXPECT_EQ(step_of(bundle_store::open(at.place.link("link", at.root))), "bundle.root");
    EXPECT_EQ(step_of(bundle_store::open(at.place.directory("open", 0750))), "bundle.root");
    EXPECT_EQ(step_of(bundle_store::open(at.place.file("file", "", 0600))), "bundle.root");
    EXPECT_EQ(step_of(bundle_store::open(at.place / "absent")), "bundle.root");
    (void)at.place.link("above", at.place.path());
    EXPECT_EQ(step_of(bundle_store::open(at.place / "above/library")), "bundle.root");
}

TEST(bundle_store, a_root_that_was_replaced_or_opened_is_refused) {
    const library at;
    const auto digest = at.put("content");
    const auto store = at.store();
    ASSERT_TRUE(store.fetch(digest));
    test::prepared(::chmod(at.root.c_str(), 0711) == 0, "chmod");
    EXPECT_EQ(step_of(store.fetch(digest)), "bundle.root");
    test::prepared(::chmod(at.root.c_str(), 0700) == 0, "chmod");
    ASSERT_TRUE(store.fetch(digest));
    std::filesystem::rename(at.root, at.place / "former");
    std::filesystem::create_directory(at.root);
    test::prepared(::chmod(at.root.c_str(), 0700) == 0, "chmod");
    (void)at.put("content");
    EXPECT_EQ(step_of(store.fetch(digest)), "bundle.root");
}

TEST(bundle_store, names_are_digests) {
    const library at;
    (void)at.put("content");
    for (const auto& name : {std::string{}, std::string(63, 'a'), std::string(64, 'A'),
                             std::string{"../"} + std::string(61, 'a')})
        EXPECT_EQ(step_of(at.store().fetch(name)), "bundle.name");
    EXPECT_EQ(step_of(at.store().fetch(std::string(64, 'a'))), "bundle.object");
}

TEST(bundle_store, what_is_not_quite_an_object_is_refused) {
    const library at;
    const auto store = at.store();
    const auto digest = at.put("content");
    const auto path = at.path(digest);
    const auto refused = [&] { return step_of(store.fetch(digest)); };
    EXPECT_EQ(refused(), "none");
    for (const ::mode_t mode : {0400U, 0640U, 0644U, 0700U, 04600U}) {
        test::prepared(::chmod(path.c_str(), mode) == 0, "chmod");
        EXPECT_EQ(refused(), "bundle.object") << mode;
    }
    test::prepared(::chmod(path.c_str(), 0600) == 0, "chmod");
    test::prepared(::link(path.c_str(), (at.place / "second").c_str()) == 0, "link");
    EXPECT_EQ(refused(), "bundle.object");
    test::prepared(::unlink((at.place / "second").c_str()) == 0, "unlink");
    EXPECT_EQ(refused(), "none");

    (void)at.place.file("library/" + digest + ".json", "Content", 0600);
    EXPECT_EQ(refused(), "bundle.digest");
    std::filesystem::rename(path, at.place / "moved");
    (void)at.place.file("moved", "content", 0600);
    test::prepared(::symlink((at.place / "moved").c_str(), path.c_str()) == 0, "symlink");
    EXPECT_EQ(refused(), "bundle.object");
    for (const auto& make : std::vector<std::function<void()>>{
             [&] { std::filesystem::create_directory(path); },
             [&] { test::prepared(::mkfifo(path.c_str(), 0600) == 0, "mkfifo"); }}) {
        std::filesystem::remove(path);
        make();
        EXPECT_EQ(refused(), "bundle.object");
    }
    std::filesystem::remove(path);
    EXPECT_EQ(store.fetch(digest).error().code, errc::not_found);
}

TEST(bundle_store, as_large_an_object_as_allowed_and_one_byte_larger) {
    const library at;
    EXPECT_EQ(step_of(at.store().fetch(at.put(""))), "bundle.object");
    EXPECT_EQ(step_of(at.store().fetch(at.put("1"))), "none");
    EXPECT_EQ(step_of(at.store().fetch(at.put(std::string(most_bundle_bytes, 'x')))), "none");
    const auto larger = at.store().fetch(at.put(std::string(most_bundle_bytes + 1, 'x')));
    EXPECT_EQ(step_of(larger), "bundle.object");
    EXPECT_EQ(larger.error().code, errc::limit_exceeded);
    EXPECT_EQ(step_of(at.store().fetch(at.put("1234"), 4)), "none");
    EXPECT_EQ(step_of(at.store().fetch(at.put("12345"), 4)), "bundle.object");
}

TEST(bundle_store, what_changes_after_it_was_fetched_is_not_mounted) {
    const library at;
    const auto digest = at.put("content");
    const auto object = at.store().fetch(digest).value();
    EXPECT_TRUE(check_unchanged(object));
    (void)at.place.file("library/" + digest + ".json", "Content", 0600);
    EXPECT_EQ(step_of(check_unchanged(object)), "bundle.changed");
    // Put back, the file still is not what was judged.
    (void)at.place.file("library/" + digest + ".json", "content", 0600);
    EXPECT_EQ(step_of(check_unchanged(object)), "bundle.changed");
    EXPECT_TRUE(check_unchanged(at.store().fetch(digest).value()));
}

TEST(resolve_bundles, targets_are_the_destinations) {
    const library at;
    const auto one = at.put(encode(bundle({entry("k", "1")})).value());
    const auto two = at.put(encode(bundle({entry("k", "2")})).value());
    const std::vector<library_projection> plan{{"a", one, "libraries"}, {"b", two, "others"}};
    const auto all = resolve_bundles(at.store(), rules(), plan);
    ASSERT_TRUE(all) << all.error().detail;
    EXPECT_EQ((*all)[0].target_path, "/opt/sage/library-bundles/" + one + ".json");
    EXPECT_EQ((*all)[1].target_path, "/opt/others/" + two + ".json");
    EXPECT_EQ((*all)[1].document.entries.front().content, "2");
}

TEST(resolve_bundles, what_cannot_stand_together_is_refused) {
    const library at;
    const auto one = at.put(encode(bundle({entry("k", "1")})).value());
    const auto two = at.put(encode(bundle({entry("k", "2")})).value());
    const auto tried = [&](std::vector<library_projection> plan) {
        return std::string{step_of(resolve_bundles(at.store(), rules(), plan))};
    };
    EXPECT_EQ(tried({{"a", one, "others"}, {"b", one, "libraries"}}), "none");
    EXPECT_EQ(tried({{"a", one, "others"}, {"b", one, "others"}}), "bundle.target");
    EXPECT_EQ(tried({{"a", one, "others"}, {"b", one, "same"}}), "bundle.target");
    EXPECT_EQ(tried({{"a", one, "others"}, {"a", two, "libraries"}}), "bundle.repeated");
    EXPECT_EQ(tried({{"a", one, "nowhere"}}), "bundle.destination");
    EXPECT_EQ(tried({{"a", at.put("{}"), "others"}}), "wire.missing");
    EXPECT_EQ(tried({{"a", std::string(64, 'f'), "others"}}), "bundle.object");
}

// White space makes an object as large as it is wanted.
auto of_size(std::string content, std::size_t bytes) -> std::string {
    auto out = encode(bundle({entry("k", std::move(content))})).value();
    return out + std::string(bytes - out.size(), ' ');
}

TEST(resolve_bundles, as_much_for_one_launch_as_allowed_and_one_byte_more) {
    const library at;
    constexpr auto half = most_bundle_bytes / 2;
    const auto one = at.put(of_size("1", half));
    const auto two = at.put(of_size("2", half));
    const auto more = at.put(of_size("3", half + 1));
    const auto tried = [&](const std::string& a, const std::string& b) {
        return std::string{step_of(resolve_bundles(
            at.store(), rules(),
            std::vector<library_projection>{{"a", a, "others"}, {"b", b, "others"}}))};
    };
    EXPECT_EQ(tried(one, two), "none");
    EXPECT_EQ(tried(one, more), "bundle.total");
}

} // namespace
