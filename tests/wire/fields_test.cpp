// Field tables: each way of breaking a row is tried from the table itself, and what is encoded
// decodes to the same value.
#include <glove/wire/fields.hpp>
#include <gtest/gtest.h>

namespace {

using namespace glove;
using namespace std::string_view_literals;
using wire::json::array;
using wire::json::kind;
using wire::json::object;
using wire::json::value;

enum class access : std::uint8_t { none, read, write };

struct mount {
    std::string path;
    access mode = access::none;
    auto operator==(const mount&) const -> bool = default;
};

struct sample {
    std::string version = "2.0";
    std::string id;
    std::string digest;
    std::uint8_t level = 0;
    std::int64_t offset = 0;
    std::uint64_t big = 0;
    bool on = false;
    std::optional<std::string> note;
    std::optional<std::uint32_t> code;
    std::optional<mount> extra;
    std::uint16_t port = 443;
    mount root;
    std::vector<mount> mounts;
    std::vector<std::string> names;
    value payload;
    auto operator==(const sample&) const -> bool = default;
};

constexpr wire::word<access> access_words[] = {{"read", access::read}, {"write", access::write}};
constexpr wire::word<std::string_view> version_words[] = {{"2.0", "2.0"}};

constexpr auto mount_fields =
    wire::table(wire::row<&mount::path, wire::absolute_path>("path"),
                wire::row<&mount::mode, wire::choice<access_words>{}>("mode"));

constexpr auto sample_fields = wire::table(
    wire::row<&sample::version, wire::choice<version_words>{}>("version"),
    wire::row<&sample::id, wire::ident>("id"), wire::row<&sample::digest, wire::hex64>("digest"),
    wire::row<&sample::level, wire::integer{1, 2}>("level"),
    wire::row<&sample::offset, wire::integer{-5, 5}>("offset"),
    wire::row<&sample::big, wire::integer{}>("big"), wire::row<&sample::on, wire::flag{}>("on"),
    wire::row<&sample::note, wire::label>("note"),
    wire::row<&sample::code, wire::integer{0, UINT32_MAX}>("code"),
    wire::row<&sample::extra, wire::record<mount_fields>{}>("extra"),
    wire::defaulted_row<&sample::port, wire::integer{1, 65535}>("port"),
    wire::row<&sample::root, wire::record<mount_fields>{}>("root"),
    wire::row<&sample::mounts, wire::list<wire::record<mount_fields>{}>{0, 2}>("mounts"),
    wire::row<&sample::names, wire::list<wire::alias>{1, 3}>("names"),
    wire::row<&sample::payload, wire::any{}>("payload"));

auto good() -> sample {
    sample out;
    out.id = "session:1";
    out.digest = std::string(64, 'a');
    out.level = 1;
    out.offset = -5;
    out.big = UINT64_MAX;
    out.on = true;
    out.root = {"/work", access::read};
    out.mounts = {{"/a", access::read}, {"/b", access::write}};
    out.names = {"x"};
    out.payload = array{value{1}, value{}};
    return out;
}

auto tree_of(const sample& in) -> object {
    return *wire::json::read(wire::encode(in, sample_fields).value())->as_object();
}

auto with(object in, std::string_view name, value data) -> value {
    for (auto& m : in)
        if (m.name == name) {
            m.data = std::move(data);
            return in;
        }
    in.push_back({std::string{name}, std::move(data)});
    return in;
}

struct verdict {
    std::string step;
    std::string detail;
};
auto judge(const value& in) -> verdict {
    const auto out = wire::decode(in, sample_fields);
    if (out) return {"accepted", ""};
    return {std::string{out.error().step}, out.error().detail};
}

TEST(Fields, WhatIsEncodedDecodesEqual) {
    auto in = good();
    EXPECT_EQ(wire::decode_text(wire::encode(in, sample_fields).value(), sample_fields), in);
    in.note = "caf\xc3\xa9";
    in.code = 0;
    in.extra = mount{"/e", access::write};
    in.port = 80;
    EXPECT_EQ(wire::decode_text(wire::encode(in, sample_fields).value(), sample_fields), in);
}

TEST(Fields, EncoderFollowsTheTableAndLeavesAbsentMembersOut) {
    EXPECT_EQ(wire::encode(good(), sample_fields).value(),
              R"({"version":"2.0","id":"session:1","digest":")" + std::string(64, 'a') +
                  R"(","level":1,"offset":-5,"big":18446744073709551615,"on":true,)"
                  R"("root":{"path":"/work","mode":"read"},"mounts":[{"path":"/a","mode":"read"},)"
                  R"({"path":"/b","mode":"write"}],"names":["x"],"payload":[1,null]})");
}

TEST(Fields, MembersMayComeInAnyOrder) {
    auto in = tree_of(good());
    std::reverse(in.begin(), in.end());
    EXPECT_EQ(wire::decode(value{in}, sample_fields), good());
}

// --- the matrix, made from the table ---

TEST(Fields, EachRequiredMemberThatIsMissingIsNamed) {
    for (const auto& row : sample_fields) {
        auto in = tree_of(good());
        std::erase_if(in, [&](const auto& m) { return m.name == row.name; });
        const auto out = judge(in);
        if (row.presence == wire::need::required) {
            EXPECT_EQ(out.step, "wire.missing") << row.name;
            EXPECT_EQ(out.detail, "$." + std::string{row.name} + " is missing");
        } else {
            EXPECT_EQ(out.step, "accepted") << row.name;
        }
    }
}

TEST(Fields, EachMemberThatRepeatsIsNamed) {
    auto full = good();
    full.note = "n";
    full.code = 1;
    full.extra = mount{"/e", access::read};
    full.port = 1;
    ASSERT_EQ(tree_of(full).size(), sample_fields.size());
    for (const auto& row : sample_fields) {
        auto in = tree_of(full);
        in.push_back(
            *std::find_if(in.begin(), in.end(), [&](const auto& m) { return m.name == row.name; }));
        const auto out = judge(in);
        EXPECT_EQ(out.step, "wire.repeated") << row.name;
        EXPECT_EQ(out.detail, "$." + std::string{row.name} + " appears twice");
    }
}

TEST(Fields, EachOtherJsonTypeIsRefused) {
    const value samples[] = {value{},        value{true}, *wire::json::make_number("1.5"),
                             value{1},       value{"x"},  value{array{}},
                             value{object{}}};
    for (const auto& row : sample_fields) {
        if (row.form.type == kind::null) continue;
        for (const auto& data : samples) {
            if (data.type() == row.form.type) continue;
            const auto out = judge(with(tree_of(good()), row.name, data));
            if (data.is_null() && row.presence != wire::need::required) {
                EXPECT_EQ(out.step, "accepted") << row.name;
            } else {
                EXPECT_EQ(out.step, "wire.type") << row.name;
                EXPECT_TRUE(out.detail.starts_with("$." + std::string{row.name} + " "));
            }
        }
    }
}

TEST(Fields, EachIntegerIsBoundedAtBothEnds) {
    for (const auto& row : sample_fields) {
        if (row.form.type != kind::integer) continue;
        const auto step = [&](auto i) {
            return judge(with(tree_of(good()), row.name, value{i})).step;
        };
        EXPECT_EQ(step(row.form.min), "accepted") << row.name;
        EXPECT_EQ(step(row.form.max), "accepted") << row.name;
        EXPECT_EQ(step(row.form.min - 1), "wire.range") << row.name;
        EXPECT_EQ(step(INT64_MIN), "wire.range") << row.name;
        if (row.form.max == UINT64_MAX) continue;
        EXPECT_EQ(step(row.form.max + 1), "wire.range") << row.name;
    }
}

TEST(Fields, IntegersThatWouldWrapInTheMemberAreRefused) {
    // 257 is 1 in a byte, which the rule alone would accept after a careless cast.
    EXPECT_EQ(judge(with(tree_of(good()), "level", 257)).step, "wire.range");
    EXPECT_EQ(judge(with(tree_of(good()), "offset", UINT64_MAX)).step, "wire.range");
}

TEST(Fields, EachTextIsBoundedAtBothEnds) {
    for (const auto& row : sample_fields) {
        if (row.form.type != kind::string || row.form.grammar == "choice") continue;
        const auto step = [&](std::uint64_t size) {
            return judge(with(tree_of(good()), row.name, std::string(size, 'a'))).step;
        };
        EXPECT_EQ(step(static_cast<std::uint64_t>(row.form.min)), "accepted") << row.name;
        EXPECT_EQ(step(row.form.max), "accepted") << row.name;
        EXPECT_EQ(step(static_cast<std::uint64_t>(row.form.min) - 1), "wire.length") << row.name;
        EXPECT_EQ(step(row.form.max + 1), "wire.length") << row.name;
        const auto bad = std::string(static_cast<std::size_t>(row.form.max), '\n');
        EXPECT_EQ(judge(with(tree_of(good()), row.name, bad)).step, "wire.grammar") << row.name;
    }
}

TEST(Fields, EachListIsBoundedAtBothEnds) {
    for (const auto& row : sample_fields) {
        if (row.form.type != kind::array) continue;
        const auto tree = tree_of(good());
        const auto item = value{tree}.find(row.name)->as_array()->front();
        const auto out = [&](std::uint64_t size) {
            return judge(with(tree, row.name, array(size, item)));
        };
        EXPECT_EQ(out(static_cast<std::uint64_t>(row.form.min)).step, "accepted") << row.name;
        EXPECT_EQ(out(row.form.max).step, "accepted") << row.name;
        EXPECT_EQ(out(row.form.max + 1).step, "wire.length") << row.name;
        if (row.form.min == 0) continue;
        EXPECT_EQ(out(static_cast<std::uint64_t>(row.form.min) - 1).step, "wire.length");
    }
}

// --- single cases ---

TEST(Fields, UnknownMemberIsNamed) {
    auto in = tree_of(good());
    in.push_back({"new\x1b", value{1}});
    EXPECT_EQ(judge(in).step, "wire.unknown");
    EXPECT_EQ(judge(in).detail, "$.new? is not known");
    EXPECT_EQ(judge(with(tree_of(good()), "ID", "x")).step, "wire.unknown");
    EXPECT_EQ(judge(with(tree_of(good()), "", "x")).detail, "$. is not known");
}

TEST(Fields, ErrorsBelowNameTheWholePath) {
    const auto bad = object{{"path", value{"/a/../b"}}, {"mode", value{"read"}}};
    const auto ok = object{{"path", value{"/a"}}, {"mode", value{"read"}}};
    EXPECT_EQ(judge(with(tree_of(good()), "root", bad)).detail,
              "$.root.path does not have the form path");
    EXPECT_EQ(judge(with(tree_of(good()), "extra", bad)).step, "wire.grammar");
    const auto out = judge(with(tree_of(good()), "mounts", array{value{ok}, value{bad}}));
    EXPECT_EQ(out.detail, "$.mounts[1].path does not have the form path");
    EXPECT_EQ(judge(with(tree_of(good()), "names", array{value{"a"}, value{"a:b"}})).detail,
              "$.names[1] does not have the form alias");
    auto more = ok;
    more.push_back({"x", value{1}});
    EXPECT_EQ(judge(with(tree_of(good()), "mounts", array{value{more}})).detail,
              "$.mounts[0].x is not known");
}

TEST(Fields, MessagesDoNotHoldTheValue) {
    for (const auto* name : {"id", "digest", "version", "level"})
        EXPECT_EQ(judge(with(tree_of(good()), name, "secret secret")).detail.find("secret"),
                  std::string::npos);
}

TEST(Fields, WordsOutsideAChoiceAreRefused) {
    for (const auto* word : {"", "READ", "none", "readx", "rea"}) {
        const auto bad = object{{"path", value{"/a"}}, {"mode", value{word}}};
        EXPECT_EQ(judge(with(tree_of(good()), "root", bad)).step, "wire.choice") << word;
    }
    EXPECT_EQ(judge(with(tree_of(good()), "version", "1.0")).step, "wire.choice");
}

TEST(Fields, SomethingOtherThanAnObjectIsRefused) {
    EXPECT_EQ(judge(array{}).step, "wire.type");
    EXPECT_EQ(judge(array{}).detail, "$ is array, not object");
    EXPECT_EQ(wire::decode_text("[1,", sample_fields).error().step, "json.syntax");
}

TEST(Fields, EncoderRefusesWhatTheDecoderWouldRefuse) {
    const auto step = [](auto change) {
        auto in = good();
        change(in);
        const auto out = wire::encode(in, sample_fields);
        return out ? "accepted" : std::string{out.error().step};
    };
    EXPECT_EQ(step([](sample&) {}), "accepted");
    EXPECT_EQ(step([](sample& s) { s.id = "a b"; }), "wire.grammar");
    EXPECT_EQ(step([](sample& s) { s.id = ""; }), "wire.length");
    EXPECT_EQ(step([](sample& s) { s.level = 3; }), "wire.range");
    EXPECT_EQ(step([](sample& s) { s.offset = -6; }), "wire.range");
    EXPECT_EQ(step([](sample& s) { s.note = "a/b"; }), "wire.grammar");
    EXPECT_EQ(step([](sample& s) { s.note = "\xff"; }), "wire.grammar");
    EXPECT_EQ(step([](sample& s) { s.root.mode = access::none; }), "wire.choice");
    EXPECT_EQ(step([](sample& s) { s.version = "3"; }), "wire.choice");
    EXPECT_EQ(step([](sample& s) { s.names.clear(); }), "wire.length");
    EXPECT_EQ(step([](sample& s) { s.names = {"a", "b c"}; }), "wire.grammar");
    EXPECT_EQ(step([](sample& s) { s.mounts.resize(3); }), "wire.length");
    EXPECT_EQ(step([](sample& s) { s.port = 0; }), "wire.range");
}

} // namespace
