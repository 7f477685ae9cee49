//! Compiles two parts of llama.cpp: its chat layer (templates with tools, the parsers of answers), and its media library (pictures
//! and sound).
//!
//! `llama-cpp-sys-2` ships the sources and Hob leaves them out of that build, because they belong to libraries that take minutes
//! to compile. The sources here are what is needed of them, joined into a few files, which takes a third of the time that they
//! need one by one. A few of them get a call to a limit: templates and projectors come from files that people download.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Sources that are compiled together, relative to llama.cpp's `common`.
const CHAT: [&str; 7] = [
    "chat.cpp",
    "chat-auto-parser-generator.cpp",
    "chat-auto-parser-helpers.cpp",
    "chat-diff-analyzer.cpp",
    "chat-peg-parser.cpp",
    "trie.cpp",
    "unicode.cpp",
];
// A source that specialises a template comes before those that use it.
const PEG: [&str; 2] = ["json.cpp", "peg-parser.cpp"];
const JINJA: [&str; 6] = [
    "jinja/value.cpp",
    "jinja/caps.cpp",
    "jinja/lexer.cpp",
    "jinja/parser.cpp",
    "jinja/runtime.cpp",
    "jinja/string.cpp",
];

/// Sources of the media library that are compiled together, relative to llama.cpp's `tools/mtmd`. All in `models` belong to it too.
const MEDIA: [&str; 3] = ["mtmd.cpp", "mtmd-image.cpp", "mtmd-audio.cpp"];
const CLIP: [&str; 1] = ["clip.cpp"];

/// A change of a source: the file, a text, how often it occurs, and what replaces it.
type Patch = (&'static str, &'static str, usize, &'static str);

const PATCHES: [Patch; 28] = [
    // The analysis of a template takes longer than the rest together, and its result is always the same.
    (
        "chat.cpp",
        "        struct autoparser::autoparser autoparser;\n        autoparser.analyze_template(tmpl);\n",
        1,
        "        const struct autoparser::autoparser & autoparser = hob::analysis_of(tmpl);\n",
    ),
    // This is only for a message that is not written.
    ("chat.cpp", "        arena.load(auto_params.parser);\n", 1, ""),
    // The grammar of a call allows blanks before its end, so the parser must too.
    (
        "chat-auto-parser-generator.cpp",
        "        auto close_peek = arguments.tolerate_intertag_whitespace\n",
        1,
        "        auto close_peek = true\n",
    ),
    // MiniMax M2 writes several calls in one section, with a line break between them.
    (
        "chat-auto-parser-generator.cpp",
        "p.zero_or_more(separator + tool_choice) + p.space() +\n",
        1,
        "p.zero_or_more(p.optional(p.literal(\",\")) + p.space() + tool_choice) + p.space() +\n",
    ),
    // The prompt ends with the mark that this expects before the words of Command R+, so words before a call would not be read.
    (
        "chat-diff-analyzer.cpp",
        "              analysis.content.mode  = content_mode::ALWAYS_WRAPPED;\n              \
         analysis.content.start = \"<|CHATBOT_TOKEN|>\";\n              \
         analysis.content.end   = \"<|END_OF_TURN_TOKEN|>\";\n",
        1,
        "",
    ),
    // Functionary 3.2 writes this mark before every call. The first one is in the prompt.
    (
        "parsers/functionary-v3-2.cpp",
        "p.literal(\"all\\n\") + p.content(p.until(\">>>\"));\n",
        1,
        "p.literal(\"all\\n\") + p.content(p.until(\">>>\")) + p.literal(\">>>\");\n",
    ),
    (
        "parsers/functionary-v3-2.cpp",
        "p.trigger_rule(\"tools\", p.one_or_more(tool_choice));\n",
        1,
        "p.trigger_rule(\"tools\", inputs.parallel_tool_calls ? \
         tool_choice + p.zero_or_more(p.literal(\">>>\") + tool_choice) : tool_choice);\n",
    ),
    // This would drop the reason.
    ("chat.cpp", "        throw e;\n", 1, "        throw;\n"),
    // Every statement and expression of a template counts, and so does the text that it makes.
    (
        "jinja/runtime.cpp",
        "    try {\n        return execute_impl(ctx);",
        1,
        "    hob::step();\n    try {\n        value result = execute_impl(ctx);\n        if (result) {\n            \
         size_t size = result->val_arr.size() * sizeof(value);\n            \
         for (const auto & part : result->val_str.parts) { size += part.val.size() + sizeof(part); }\n            \
         hob::grow(size);\n            \
         if (is_val<value_array>(result) || is_val<value_object>(result)) { hob::keep(result, unlink_parts); }\n        \
         }\n        return result;",
    ),
    // Lists can be nested deeper than the text of a template, or contain themselves, and both printing and freeing them is recursive.
    ("jinja/runtime.cpp", "    gather_string_parts_recursive(", 4, "    gather_checked("),
    (
        "jinja/runtime.cpp",
        "static value_string exec_statements(",
        1,
        "void check_nesting(const value & val, size_t level) {\n    if (!is_val<value_array>(val)) { return; }\n    \
         hob::step();\n    hob::check_level(level);\n    size_t at = 0;\n    \
         for (const auto & item : val->val_arr) {\n        if ((++at & 63) == 0) { hob::step(); }\n        \
         check_nesting(item, level + 1);\n    }\n}\n\n\
         static void gather_checked(const value & val, value_string & parts) {\n    check_nesting(val, 0);\n    \
         gather_string_parts_recursive(val, parts);\n}\n\n\
         static void unlink_parts(void * at) {\n    auto * one = static_cast<value_t *>(at);\n    \
         one->val_arr.clear();\n    one->val_obj.clear();\n    \
         if (auto * object = dynamic_cast<value_object_t *>(one)) { object->unordered.clear(); }\n}\n\n\
         static value_string exec_statements(",
    ),
    (
        "jinja/runtime.cpp",
        "    auto rhs = val ? val->execute(ctx) : exec_statements(body, ctx);\n",
        1,
        "    auto rhs = val ? val->execute(ctx) : exec_statements(body, ctx);\n    check_nesting(rhs, 0);\n",
    ),
    (
        "jinja/caps.cpp",
        "        auto parts = jinja::runtime::gather_string_parts(results);\n",
        1,
        "        jinja::check_nesting(results, 0);\n        auto parts = jinja::runtime::gather_string_parts(results);\n",
    ),
    (
        "chat.cpp",
        "    auto parts = jinja::runtime::gather_string_parts(results);\n",
        1,
        "    jinja::check_nesting(results, 0);\n    auto parts = jinja::runtime::gather_string_parts(results);\n",
    ),
    // An error of a limit is not an error at a place of the template.
    (
        "jinja/runtime.cpp",
        "    } catch (const rethrown_exception & /* ex */) {\n        throw;",
        1,
        "    } catch (const hob::limit_reached & /* ex */) {\n        throw;\n    } catch (const rethrown_exception & /* ex */) \
         {\n        throw;",
    ),
    (
        "jinja/runtime.cpp",
        "            res->val_str.append(str);",
        1,
        "            hob::step();\n            hob::grow(str.length() + 64);\n            res->val_str.append(str);",
    ),
    // The parser of templates looks at a token at each level.
    (
        "jinja/parser.cpp",
        "    const token & peek(size_t offset = 0) const {",
        1,
        "    const token & peek(size_t offset = 0) const {\n        hob::step();",
    ),
    // A chain such as `1 + 1 + 1` is read without recursion, and freed with it.
    (
        "jinja/parser.cpp",
        "    program parse() {\n",
        1,
        "    program parse() {\n        size_t length = 0;\n        for (const auto & one : tokens) {\n            \
         const bool opens = one.t == token::open_statement || one.t == token::open_expression;\n            \
         length = opens || one.t == token::text ? 0 : length + 1;\n            hob::check_tag(length);\n        }\n",
    ),
    // A template can nest its values deeper than its text, and these functions are recursive.
    (
        "jinja/value.cpp",
        "    auto indent_str = [indent, curr_lvl]() -> std::string {",
        1,
        "    hob::step();\n    auto indent_str = [indent, curr_lvl]() -> std::string {",
    ),
    (
        "jinja/value.cpp",
        "std::string value_to_string_repr(const value & val) {\n",
        1,
        "std::string value_to_string_repr(const value & val) {\n    hob::step();\n",
    ),
    (
        "jinja/value.cpp",
        "    val->stats.used = true;\n",
        1,
        "    hob::step();\n    val->stats.used = true;\n",
    ),
    (
        "jinja/value.cpp",
        "                    out->push_back(mk_val<value_int>(i));",
        2,
        "                    hob::step();\n                    hob::grow(sizeof(value_int_t));\n                    \
         out->push_back(mk_val<value_int>(i));",
    ),
    // A long list of tools is printed as signatures, which need less than half of the tokens.
    (
        "jinja/value.cpp",
        "    std::string json_str = value_to_json(args.get_pos(0), indent, item_sep, key_sep);\n",
        1,
        "    value described = args.get_pos(0);\n    value missing = mk_val<value_undefined>();\n    \
         if (is_val<value_object>(described)) {\n        value function = described->at(\"function\", missing);\n        \
         value tool = is_val<value_object>(function) ? function : described;\n        \
         value name = tool->at(\"name\", missing);\n        \
         const bool is_tool = !tool->at(\"description\", missing)->is_undefined() && \
         !tool->at(\"parameters\", missing)->is_undefined();\n        \
         if (is_tool && is_val<value_string>(name)) {\n            \
         if (const std::string * signature = hob::signature_of(name->as_string().str())) {\n                \
         return mk_val<value_string>(*signature);\n            }\n        }\n    }\n    \
         std::string json_str = value_to_json(args.get_pos(0), indent, item_sep, key_sep);\n",
    ),
    // A division by zero would end the process.
    (
        "jinja/value.cpp",
        "args.get_pos(0)->val_int % args.get_pos(1)->val_int == 0;",
        1,
        "args.get_pos(1)->val_int != 0 && args.get_pos(1)->val_int != -1 ? \
         args.get_pos(0)->val_int % args.get_pos(1)->val_int == 0 : args.get_pos(1)->val_int == -1;",
    ),
    // Rules have names with those of callers' tools and fields. std::regex calls itself for each character of such a name.
    (
        "peg-parser.cpp",
        "    static const std::regex invalid_rule_chars_re(\"[^a-zA-Z0-9-]+\");\n    return std::regex_replace(name, invalid_rule_chars_re, \"-\");\n",
        1,
        "    return hob::rule_name(name);\n",
    ),
    // The parser of answers is recursive. Grammars can be those of calls alone.
    ("peg-parser.cpp", "    // Execute parser\n", 1, "    hob::step();\n"),
    (
        "peg-parser.cpp",
        "const common_grammar_builder & builder, bool lazy) const {\n",
        1,
        "const common_grammar_builder & builder, bool lazy) const {\n    lazy = lazy || hob::calls_only();\n",
    ),
    // Sizes in the header of a projector are divisors, and a division by zero would end the process.
    (
        "clip.cpp",
        "        if (val > (uint32_t) INT32_MAX) {\n",
        1,
        "        hob_media_guard::check_number(key, val);\n        if (val > (uint32_t) INT32_MAX) {\n",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=native");
    let sources = llama_cpp()?;
    // For the tests.
    println!("cargo:rustc-env=HOB_LLAMA_CPP_SOURCES={}", sources.display());
    // Saved states of a model belong to one version.
    let version = sources.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    println!("cargo:rustc-env=HOB_LLAMA_CPP={}", version.ok_or("the sources of llama.cpp have no version")?);
    compile_chat(&sources)?;
    compile_media(&sources)?;
    if std::env::var_os("CARGO_FEATURE_DYNAMIC_BACKENDS").is_some() {
        copy_libraries(&PathBuf::from(std::env::var("OUT_DIR")?))?;
    }
    Ok(())
}

fn compile_chat(sources: &Path) -> Result<(), Box<dyn Error>> {
    let common = sources.join("common");
    let parsers = sources_in(&common, "parsers")?;
    let native = native("chat")?;
    let mut build = compiler(sources, &native)?;
    build.include(native.join("include")).include(&common);
    build.file(joined(&common, "chat", &CHAT)?);
    build.file(joined(&common, "peg", &PEG)?);
    build.file(joined(&common, "jinja", &JINJA)?);
    build.file(joined(&common, "parsers", &parsers)?);
    build.file(native.join("support.cpp"));
    build.file(native.join("shim.cpp"));
    build.try_compile("hob_chat")?;
    Ok(())
}

fn compile_media(sources: &Path) -> Result<(), Box<dyn Error>> {
    let media = sources.join("tools/mtmd");
    let models = sources_in(&media, "models")?;
    let native = native("media")?;
    let mut build = compiler(sources, &native)?;
    build.include(&media);
    build.file(joined(&media, "clip", &CLIP)?);
    build.file(joined(&media, "media", &MEDIA)?);
    build.file(native.join("sound.cpp"));
    build.file(joined(&media, "projectors", &models)?);
    build.file(native.join("shim.cpp"));
    build.try_compile("hob_media")?;
    Ok(())
}

fn compiler(sources: &Path, native: &Path) -> Result<cc::Build, Box<dyn Error>> {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .warnings(false)
        .flag_if_supported("-w")
        // It would be twenty times the size of the library.
        .debug(false)
        // Tests run thousands of parses, which take ten times longer without any optimisation.
        .opt_level(if std::env::var("PROFILE")? == "debug" { 1 } else { 2 })
        .include(native)
        .include(sources.join("include"))
        .include(sources.join("ggml/include"))
        .include(sources.join("vendor"));
    Ok(build)
}

/// Puts the libraries of llama.cpp beside the program, where it looks for them.
fn copy_libraries(out: &Path) -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("DEP_LLAMA_ROOT")?);
    let beside = out.ancestors().nth(3).ok_or("OUT_DIR is not in a target directory")?;
    for directory in ["lib", "backends"] {
        for entry in fs::read_dir(root.join(directory))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // Programs name a library by its major version, and backends have none.
            let is_wanted = match directory {
                "lib" => name.ends_with(".so.0"),
                _ => name.ends_with(".so"),
            };
            if is_wanted {
                // Renamed at the end: a running program may use the older file.
                let part = beside.join(format!("{name}.part"));
                fs::copy(&path, &part)?;
                fs::rename(&part, beside.join(name))?;
            }
        }
    }
    Ok(())
}

/// A folder of Hob's own C++.
fn native(part: &str) -> Result<PathBuf, Box<dyn Error>> {
    Ok(PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("native").join(part))
}

/// All sources in a folder, relative to `root`.
fn sources_in(root: &Path, folder: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let mut found: Vec<String> = fs::read_dir(root.join(folder))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".cpp"))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    found.sort();
    Ok(found)
}

/// The sources of llama.cpp, as the build of `llama-cpp-sys-2` wrote them down.
fn llama_cpp() -> Result<PathBuf, Box<dyn Error>> {
    let root =
        std::env::var("DEP_LLAMA_ROOT").map_err(|_| "llama-cpp-sys-2 does not say where it was built")?;
    let cache = Path::new(&root).join("build/CMakeCache.txt");
    let text = fs::read_to_string(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("CMAKE_HOME_DIRECTORY:INTERNAL="));
    let sources = PathBuf::from(line.ok_or("CMakeCache.txt does not name the sources of llama.cpp")?);
    if !sources.join("common/chat.cpp").is_file() {
        return Err(format!("{} has no chat layer", sources.display()).into());
    }
    Ok(sources)
}

/// One file that includes several sources, with their changes.
fn joined(root: &Path, name: &str, sources: &[impl AsRef<str>]) -> Result<PathBuf, Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut text = "#include \"guard.h\"\n".to_owned();
    for source in sources.iter().map(AsRef::as_ref) {
        let changes: Vec<_> = PATCHES.iter().filter(|change| change.0 == source).collect();
        let mut path = root.join(source);
        if !changes.is_empty() {
            let mut patched = fs::read_to_string(&path)?;
            for (_, from, times, to) in changes {
                if patched.matches(from).count() != *times {
                    return Err(
                        format!("llama.cpp has changed: {source} has not {times} times {from:?}").into()
                    );
                }
                patched = patched.replace(from, to);
            }
            // A copy no longer lies beside its headers.
            if source.starts_with("parsers/") {
                patched = patched.replace("#include \"parsers.h\"", "#include \"parsers/parsers.h\"");
            }
            if source.starts_with("jinja/") {
                for header in ["caps", "lexer", "parser", "runtime", "string", "utils", "value"] {
                    let from = format!("#include \"{header}.h\"");
                    patched = patched.replace(&from, &format!("#include \"jinja/{header}.h\""));
                }
            }
            path = out.join(source.replace('/', "_"));
            fs::write(&path, patched)?;
        }
        // Only for messages, and each source has its own.
        text.push_str(&format!("#undef FILENAME\n#include {:?}\n", path.display().to_string()));
    }
    let file = out.join(format!("{name}_sources.cpp"));
    fs::write(&file, text)?;
    Ok(file)
}
