#include "src/data/frames/recordings.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "modules/base/error.h"
#include "src/data/frames/audio.h"
#include "src/spec/reader.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"
#include "tests/support/skip.h"
#include "tests/support/wav.h"

using namespace headlab;

namespace {

using Names = std::vector<std::string>;

/// A folder of tones, each of its own pitch and length.
struct Corpus {
  Scratch scratch;
  std::string folder() const { return scratch.path.string(); }
  void tone(const std::string& name, int64_t rate = 8000) {
    const auto file = scratch / name;
    std::filesystem::create_directories(file.parent_path());
    test::Wav wav{.rate = rate};
    const auto number = static_cast<double>(++tones_);
    for (int64_t n = 0; n < 300 + 90 * tones_; ++n)
      wav.samples.push_back(
          static_cast<int64_t>(9000 * std::sin(0.05 * number * static_cast<double>(n)) + (n * n) % 97));
    wav.write(file.string());
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(scratch / name) << text; }

 private:
  int64_t tones_ = 0;
};

/// Of {digit}_{speaker}_{take}.wav: two digits, two speakers, takes 0 (test), 1 (valid), 2 and 3 (train).
struct Digits : Corpus {
  Digits() {
    for (const std::string digit : {"3", "7"})
      for (const std::string speaker : {"ann", "bo-b"})
        for (const std::string take : {"0", "1", "2", "3"})
          tone("digits/" + digit + "_" + speaker + "_" + take + ".wav");
    write("digits/readme.txt", "not a recording");
    tone("digits/3_ann_17.wav");  // of no part
  }
};

RecordingsOptions options_of(const std::string& json) {
  RecordingsOptions options;
  read_or_throw(Document::parse_text(json, "x.json"), options);
  return options;
}

std::string digits_with(const std::string& more) {
  return R"({"list": {"type": "file_names", "names": "digits/{digit}_{speaker}_{take}.wav", "by": "take",
             "train": ["2-9"], "valid": ["1"], "test": ["0"]},
             "text": "digit", "features": {"rate": 8000, "mels": 12})" +
         more + "}";
}

Names said(const FrameData& data, const FrameText& text) {
  Names names;
  for (const auto symbol : text.symbols) names.push_back(data.symbols.at(static_cast<std::size_t>(symbol)));
  return names;
}

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("names of files say what is said and of which part a recording is", "[recordings][paper-23]") {
  const Digits corpus;
  const auto options = options_of(digits_with(R"(, "units": "text")"));
  const auto data = options.load(corpus.folder(), 1);
  CHECK(data.width == 12);
  CHECK(options.frame_width() == 12);
  CHECK(data.symbols == Names{"3", "7"});
  CHECK(data.parts.at("test").size() == 4);
  CHECK(data.parts.at("valid").size() == 4);
  CHECK(data.parts.at("train").size() == 8);
  const auto& one = data.parts.at("valid").at(2);  // in the order of their names
  const auto audio = read_audio((corpus.scratch / "digits/7_ann_1.wav").string());
  CHECK(one.frames == LogMel(options.features)(audio.samples));
  CHECK(said(data, one) == Names{"7"});
  CHECK(options.has_frame_classes());
  CHECK(one.at_frame == std::vector<int64_t>(static_cast<std::size_t>(one.length(12)), 1));
}

TEST_CASE("a text is written as it is, as another, by words or by characters", "[recordings][paper-23]") {
  const Digits corpus;
  const auto of = [&](const std::string& more) {
    const auto options = options_of(digits_with(more));
    const auto data = options.load(corpus.folder(), 1);
    CHECK(options.has_frame_classes() == !data.parts.at("test")[0].at_frame.empty());
    return std::pair(data.symbols, said(data, data.parts.at("test").at(3)));
  };
  CHECK(of(R"(, "written": {"7": "seven"})") ==
        std::pair(Names{"3", "e", "n", "s", "v"}, Names{"s", "e", "v", "e", "n"}));
  CHECK(of(R"(, "written": {"3": "a", "7": " \u00e4\t b a "})") ==
        std::pair(Names{"<space>", "a", "b", "\u00e4"}, Names{"\u00e4", "<space>", "b", "<space>", "a"}));
  CHECK(of(R"(, "written": {"3": "two", "7": " one  two"}, "units": "words")") ==
        std::pair(Names{"one", "two"}, Names{"one", "two"}));
  CHECK(of(R"(, "written": {"7": "one two"}, "units": "text")") == std::pair(Names{"3", "one two"}, Names{"one two"}));
  // The way back.
  for (const std::string units : {"text", "words", "characters"})
    CHECK(options_of(digits_with(R"(, "units": ")" + units + "\"")).text_of({"a", "<space>", "b"}) ==
          (units == "characters" ? "a b" : "a <space> b"));
  for (const std::string more : {R"(, "written": {"7": " "})", R"(, "written": {"7": ""}, "units": "text")",
                                 R"(, "written": {"7": "a\nb"}, "units": "text")"}) {
    const auto empty = options_of(digits_with(more));
    CHECK_THAT(refusal([&] { empty.load(corpus.folder(), 1); }),
               ContainsSubstring(".wav: expected a text that is said, in one line, got \"7\""));
  }
}

TEST_CASE("joined recordings follow one another, of one part and one speaker, the same for the same seed",
          "[recordings][paper-23]") {
  const Digits corpus;
  const std::string join = R"(, "join": {"min": 2, "max": 4, "test_min": 5, "test_max": 5, "within": "speaker",)";
  auto options = options_of(digits_with(R"(, "units": "text")" + join + R"("train": 40, "valid": 20, "test": 10})"));
  const auto data = options.load(corpus.folder(), 1);
  auto alone = options;
  alone.join = JoinOptions();
  const auto single = alone.load(corpus.folder(), 1);
  std::set<std::size_t> counts;
  for (const auto& [part, texts] : data.parts) {
    CHECK(texts.size() == (part == "train" ? 40 : part == "valid" ? 20 : 10));
    for (const auto& text : texts) {
      if (part == "test")
        CHECK(text.symbols.size() == 5);
      else
        counts.insert(text.symbols.size());
      // Each stretch of frames is a recording of the part; which, its length and frames tell.
      std::set<std::string> speakers;
      std::size_t at = 0;
      for (const auto symbol : text.symbols) {
        const auto& recordings = single.parts.at(part);
        const auto found = std::find_if(recordings.begin(), recordings.end(), [&](const FrameText& one) {
          return one.symbols == std::vector{symbol} && at + one.frames.size() <= text.frames.size() &&
                 std::equal(one.frames.begin(), one.frames.end(),
                            text.frames.begin() + static_cast<std::ptrdiff_t>(at));
        });
        REQUIRE(found != recordings.end());
        // Sorted by name: digit, then speaker, then take.
        const auto takes = static_cast<std::ptrdiff_t>(recordings.size() / 4);
        speakers.insert((found - recordings.begin()) / takes % 2 == 0 ? "ann" : "bo-b");
        for (std::size_t t = at / 12; t < (at + found->frames.size()) / 12; ++t) CHECK(text.at_frame.at(t) == symbol);
        at += found->frames.size();
      }
      CHECK(at == text.frames.size());
      CHECK(text.at_frame.size() * 12 == at);
      CHECK(speakers.size() == 1);
    }
  }
  CHECK(counts == std::set<std::size_t>{2, 3, 4});
  auto fewer = options;
  fewer.join.train = 7;
  CHECK(fewer.load(corpus.folder(), 2).parts.at("train").back().frames == data.parts.at("train")[6].frames);
  fewer.join.seed = -1;
  CHECK(fewer.load(corpus.folder(), 1).parts.at("train").back().frames == data.parts.at("train")[6].frames);
  CHECK(fewer.load(corpus.folder(), 2).parts.at("train").back().frames != data.parts.at("train")[6].frames);

  options =
      options_of(digits_with(R"(, "written": {"3": "c", "7": "g"})" + join + R"("train": 4, "valid": 4, "test": 4})"));
  const auto spelled = options.load(corpus.folder(), 1);
  CHECK(spelled.symbols == Names{"<space>", "c", "g"});
  const auto names = said(spelled, spelled.parts.at("test").front());
  REQUIRE(names.size() == 9);
  for (std::size_t i = 0; i < 9; ++i) CHECK((names[i] == "<space>") == (i % 2 == 1));
}

TEST_CASE("a manifest names recordings, what is said and their part, as columns or JSON lines",
          "[recordings][paper-23]") {
  Corpus corpus;
  for (const std::string name : {"a", "b", "c", "d"}) corpus.tone("sound/clips/" + name + ".wav");
  corpus.write(
      "sound/all.tsv",
      "path\tsentence\tsplit\nb.wav\tgood day\ttrain\na.wav\tday\tvalid\nc.wav\tbad day\ttest\nd.wav\tbad\ttrain\n");
  const std::string columns = R"("file": "path", "folder": "clips")";
  const auto table = [&](const std::string& list) {
    return options_of(R"({"list": {"type": "manifest", )" + columns + ", " + list +
                      R"(}, "text": "sentence", "units": "words", "features": {"rate": 8000, "mels": 12}})");
  };
  const auto data = table(R"("train": "sound/all.tsv", "part": "split")").load(corpus.folder(), 1);
  CHECK(data.symbols == Names{"bad", "day", "good"});
  REQUIRE(data.parts.at("train").size() == 2);
  CHECK(said(data, data.parts.at("train")[0]) == Names{"good", "day"});
  CHECK(said(data, data.parts.at("test").at(0)) == Names{"bad", "day"});
  CHECK(data.parts.at("valid").at(0).frames ==
        LogMel(table(R"("train": "x")").features)(read_audio((corpus.scratch / "sound/clips/a.wav").string()).samples));

  corpus.write("sound/one.jsonl",
               "{\"path\": \"b.wav\", \"sentence\": \"good\"}\n{\"path\": \"c.wav\", \"sentence\": \"bad\"}\n");
  corpus.write("sound/two.tsv", "sentence\tpath\nbad\td.wav\n");
  const auto files = table(R"("train": "sound/one.jsonl", "valid": "sound/two.tsv", "test": "sound/two.tsv")")
                         .load(corpus.folder(), 1);
  CHECK(files.parts.at("train").size() == 2);
  CHECK(said(files, files.parts.at("valid").at(0)) == Names{"bad"});
  // Without files of their own, valid and test are drawn.
  const auto drawn =
      table(R"("train": "sound/all.tsv", "valid_share": 0.25, "test_share": 0.49)").load(corpus.folder(), 1);
  CHECK(drawn.parts.at("train").size() == 2);
  CHECK(drawn.parts.at("valid").size() == 1);
  CHECK(drawn.parts.at("test").size() == 1);
}

TEST_CASE("wrong recordings and manifests are errors with their place", "[recordings][paper-23]") {
  Corpus corpus;
  for (const std::string name : {"a", "b", "c"}) corpus.tone(name + ".wav");
  corpus.tone("fast.wav", 16000);
  const auto with = [&](const std::string& rows) {
    corpus.write("all.tsv", "file\ttext\tpart\n" + rows);
    const auto options = options_of(
        R"({"list": {"type": "manifest", "train": "all.tsv", "part": "part"},
            "features": {"rate": 8000, "mels": 12}})");
    return refusal([&] { options.load(corpus.folder(), 1); });
  };
  const auto table = corpus.folder() + "/all.tsv";
  const std::string good = "a.wav\tx\ttrain\nb.wav\ty\tvalid\nc.wav\tz\ttest\n";
  CHECK(with(good).empty());
  CHECK(with(good + "d.wav\tx\ttrain\n") == table + ":5: no such file: " + corpus.folder() + "/d.wav");
  CHECK(with(good + "a.wav\tx\tdev\n") == table + ":5: field \"part\": expected train, valid or test, got \"dev\"");
  CHECK(with(good + "a.wav\t \ttest\n") == table + ":5: expected a text that is said, in one line, got \" \"");
  CHECK(with(good + "a.wav\tx\n") == table + ":5: expected 3 columns between tabs, got 2");
  CHECK(with("a.wav\tx\ttrain\nb.wav\ty\tvalid\n") == "all.tsv: expected recordings of each part, got none of test");
  CHECK(with(good + "fast.wav\tx\ttrain\n") ==
        corpus.folder() +
            "/fast.wav: expected 8000 samples a second (features.rate), got 16000: name the rate of all recordings "
            "there before training, or convert this one (sox, ffmpeg)");
  CHECK_THAT(with(good + "all.tsv\tx\ttrain\n"), ContainsSubstring("/all.tsv: expected a recording"));
  CHECK_THAT(refusal([&] { options_of(digits_with("")).load(corpus.folder(), 1); }),
             ContainsSubstring("no such folder: digits/"));
  std::filesystem::create_directory(corpus.scratch / "digits");
  CHECK(refusal([&] { options_of(digits_with("")).load(corpus.folder(), 1); }) ==
        "digits/{digit}_{speaker}_{take}.wav: expected recordings of each part, got none of train");
  corpus.tone("digits/3_bo_b_0.wav");
  CHECK(refusal([&] { options_of(digits_with("")).load(corpus.folder(), 1); }) ==
        corpus.folder() +
            "/digits/3_bo_b_0.wav: expected a name like {digit}_{speaker}_{take}.wav, where no part holds a sign that "
            "ends one; name the recordings by a manifest");
}

TEST_CASE("options of recordings that contradict each other are told where they stand", "[recordings][paper-23]") {
  const auto refused = [](const std::string& json) { return refusal([&] { options_of(json); }); };
  const auto names = [&](const std::string& list, const std::string& more = "") {
    return refused(R"({"list": {"type": "file_names", )" + list +
                   R"(}, "text": "t", "features": {"rate": 8000, "mels": 12})" + more + "}");
  };
  const std::string parts = R"("train": ["2-5"], "valid": ["1"], "test": ["0"])";
  const std::string good = R"("names": "a/{t}_{n}.wav", "by": "n", )" + parts;
  CHECK(names(good).empty());
  CHECK_THAT(names(R"("names": "a/{t}_{n.wav", "by": "n", )" + parts),
             ContainsSubstring("expected a } after each {, got none"));
  CHECK_THAT(names(R"("names": "a/t.wav", "by": "n", )" + parts),
             ContainsSubstring("expected parts of the name in braces"));
  CHECK_THAT(names(R"("names": "{t}{n}.wav", "by": "n", )" + parts), ContainsSubstring("expected a sign after each }"));
  CHECK_THAT(names(R"("names": "{t}_{t}.wav", "by": "t", )" + parts),
             ContainsSubstring("expected a name of its own in each {}, got {t}"));
  CHECK_THAT(names(R"("names": "{t}_{n}.wav", "by": "take", )" + parts),
             ContainsSubstring("list.by: expected a part of the names in braces (t, n), got \"take\""));
  CHECK_THAT(names(R"("names": "{t}_{n}.wav", "by": "n", "train": ["2-5"], "valid": ["bo"], "test": ["4-9", "bo"])"),
             ContainsSubstring("list.test: expected other values than train has, got \"4-9\" beside \"2-5\""));
  CHECK_THAT(names(R"("names": "{a}_{n}.wav", "by": "n", )" + parts),
             ContainsSubstring("text: expected a part of the names in braces (a, n), got \"t\""));
  CHECK_THAT(names(good, R"(, "join": {"max": 3})"),
             ContainsSubstring("join.train: expected how many texts are joined, got 0"));
  CHECK_THAT(names(good, R"(, "join": {"max": 3, "train": 5, "valid": 5})"),
             ContainsSubstring("join.test: expected texts in all three parts, or 0 in all, got 0"));
  CHECK_THAT(names(good, R"(, "join": {"max": 3, "train": 5, "valid": 5, "test": 5, "within": "who"})"),
             ContainsSubstring("join.within: expected a part of the names in braces (t, n), got \"who\""));
  CHECK_THAT(names(good, R"(, "written": {"0": 0})"), ContainsSubstring("written: expected texts by name"));
  CHECK_THAT(refused(R"({"list": {"type": "manifest", "train": "a.tsv", "part": "p", "test": "b.tsv"}})"),
             ContainsSubstring("list.test: expected one table, in which the column \"p\" tells the parts"));
}

TEST_CASE("the spoken digits are 12 recordings of each digit to test on, by six speakers", "[recordings][paper-23]") {
  const char* root = std::getenv("HEADLAB_DATA");
  if (test::skipped(!root || !std::filesystem::is_directory(std::filesystem::path(root) / "speech-fsdd"),
                    "no speech-fsdd in HEADLAB_DATA"))
    return;
  const auto options = options_of(
      R"({"list": {"type": "file_names", "names": "speech-fsdd/{digit}_{speaker}_{take}.wav", "by": "take",
          "train": ["5-10"], "valid": ["11-12"], "test": ["0-1"]},
          "text": "digit", "units": "text", "features": {"rate": 8000}})");
  const auto data = options.load(".", 1);
  CHECK(data.symbols == Names{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
  CHECK(data.parts.at("train").size() == 360);
  CHECK(data.parts.at("valid").size() == 120);
  std::vector<int64_t> counts(10);
  for (const auto& text : data.parts.at("test")) ++counts.at(static_cast<std::size_t>(text.symbols.at(0)));
  CHECK(counts == std::vector<int64_t>(10, 12));
  // 0_george_0.wav: 4812 bytes, 44 of them a header, 2 a sample.
  CHECK(read_audio(std::string(root) + "/speech-fsdd/0_george_0.wav").samples.size() == 2384);
  CHECK(data.parts.at("test").front().length(40) == 1 + (2384 - 200) / 80);
}
