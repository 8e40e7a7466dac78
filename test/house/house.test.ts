/** The rules of the source tree that no tool checks. Each rule also catches a planted violation. */
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { importsPastIndex, moduleShapes, moduleState, repeatedTypeNames, retiredWords,
  scatteredLimits, sizes, type SourceTree } from "./source-rules.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folders = ["runtime", "actors", "http", "client", "create", "deploy", "examples", "test"]

const files = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8", withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .filter((file) => !file.includes("/dist/"))
)
const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".md")).map((file) => `docs/${file}`)
const sources = files.filter((file) => /\.(ts|mjs)$/.test(file))
const textOf = (file: string) => readFileSync(join(root, file), "utf8")
const tree: SourceTree = new Map(sources.map((file) => [file, textOf(file)]))
/** Sources that match, but for the tests of this folder, which hold the patterns. */
const matching = (pattern: RegExp) =>
  sources.filter((file) => !file.startsWith("test/house/") && pattern.test(textOf(file)))

/** Each rule, and a file that breaks it. */
const rules: ReadonlyArray<{
  readonly name: string
  readonly rule: (tree: SourceTree) => ReadonlyArray<string>
  readonly planted: Readonly<Record<string, string>>
}> = [
  {
    name: "imports another module by its index.ts",
    rule: importsPastIndex,
    planted: { "actors/planted.ts": "import { decide } from \"./mailbox/decide.ts\"\n" }
  },
  {
    name: "imports the runtime by its one index.ts",
    rule: importsPastIndex,
    planted: { "http/planted.ts": "import type { Timer } from \"../runtime/ports/index.ts\"\n" }
  },
  {
    name: "gives each folder an index.ts",
    rule: moduleShapes,
    planted: { "runtime/planted/one.ts": "export const one = 1\n" }
  },
  {
    name: "keeps a module to a dozen files",
    rule: moduleShapes,
    planted: Object.fromEntries(
      Array.from({ length: 14 }, (_, n) => [`runtime/planted/${n === 13 ? "index" : n}.ts`, ""])
    )
  },
  {
    name: "exports the name of a type once",
    rule: repeatedTypeNames,
    planted: {
      "http/one.ts": "export interface Planted {}\n",
      "actors/two.ts": "export type Planted = string\n"
    }
  },
  {
    name: "keeps no variable at module level",
    rule: moduleState,
    planted: { "http/planted.ts": "let count = 0\nexport const next = () => ++count\n" }
  },
  {
    name: "fills no collection at module level",
    rule: moduleState,
    planted: { "http/planted.ts": "const seen = new Map<string, number>()\n" }
  },
  {
    name: "has one limits.ts for each top-level folder",
    rule: scatteredLimits,
    planted: { "http/auth/auth-limits.ts": "export const triesMax = 10\n" }
  },
  {
    name: "keeps files to 800 lines",
    rule: sizes,
    planted: { "http/planted.ts": "export {}\n".repeat(801) }
  },
  {
    name: "keeps lines to 100 columns",
    rule: sizes,
    planted: { "http/planted.ts": `// ${"x".repeat(98)}\n` }
  }
]

describe("the source tree", () => {
  it.each(rules)("$name", ({ planted, rule }) => {
    expect(rule(tree)).toEqual([])
    expect(rule(new Map([...tree, ...Object.entries(planted)]))).not.toEqual([])
  })

  it("uses the words of the glossary, and plain ones", () => {
    const alternatives = [
      ...["tidings", "surroundings", "hearken", "voyage", "errands?", "wake-?ups?", "lately"],
      ...["upon", "whom", "anew", "thus", "hence", "thereby", "hereby", "whence", "whereby"],
      ...["therein", "wherein", "hitherto", "henceforth", "beforehand", "forthwith", "lest"],
      ...["heed", "nought", "beget", "albeit", "amid", "behold", "shall", "one's own"],
      ...["all the same", "told apart", "passed over", "without more ado"]
    ]
    const words = new RegExp(`\\b(${alternatives.join("|")})\\b`, "i")
    // These name the words that are not used, quote the specification, or have a license.
    const pagesQuoting = "(test/)?docs/(glossary|protocol)(\\.test\\.ts|\\.md)"
    const licenses = "http/formats/html/(packages/\\w+|scripts/uplot)\\.ts"
    const quoting = new RegExp(`^(${licenses}|test/house/|${pagesQuoting})`)
    const texts = [...files.filter((file) => /\.(ts|mjs|md)$/.test(file)), ...pages, "README.md"]
      .filter((file) => !quoting.test(file)).map((file) => [file, textOf(file)] as const)
    expect(retiredWords(new Map(texts), words)).toEqual([])
    for (const word of alternatives) {
      const planted = new Map([["http/planted.ts", `// A ${word.replaceAll(/s?\?/g, "")} B.`]])
      expect(retiredWords(planted, words)).toHaveLength(1)
    }
  })

  it("has its top level", () => {
    const there = readdirSync(root)
    const needed = ["package.json", "tsconfig.json", "cluster.config.ts", "README.md", "LICENSE"]
    for (const name of [...folders, ...needed, "CHANGELOG.md", "docs", ".ci"]) {
      expect(there).toContain(name)
    }
  })

  it("runs in the long form each suite that tries more there", () => {
    const deeper = matching(/process\.env\["TEST_LONG"\]/)
      .filter((file) => file.endsWith(".test.ts"))
    expect(deeper.length).toBeGreaterThan(0)
    const named = textOf("vitest.config.ts")
    expect(deeper.filter((file) => !named.includes(`"${file}"`))).toEqual([])
  })

  it.each([...folders, "runtime/embedded", "runtime/nats"])("%s/ has a README.md", (folder) => {
    expect(files).toContain(`${folder}/README.md`)
  })

  it("keeps each example under 150 lines, with its page and its simulation", () => {
    const examples = files.filter((file) => /^examples\/[^/]+\/index\.ts$/.test(file)).map(dirname)
    expect(examples.length).toBeGreaterThan(5)
    for (const example of examples) {
      for (const name of ["README.md", "simulation.ts"]) {
        expect(files).toContain(`${example}/${name}`)
      }
      const program = ["index.ts", "main.ts"].map((name) => textOf(`${example}/${name}`)).join("")
      expect(program.trimEnd().split("\n").length, example).toBeLessThan(150)
    }
  })

  it("names nothing utils, helpers, common or misc", () => {
    const vague = /(^|\/)(utils?|helpers?|common|misc)(\/|\.|$)/i
    expect(files.filter((file) => vague.test(file))).toEqual([])
  })

  it("names files in lower case", () => {
    expect(sources.filter((file) => !/^[a-z0-9.-]+$/.test(basename(file)))).toEqual([])
  })

  it("opens each source file of the service with what it is", () => {
    const service = sources.filter((file) => !file.startsWith("test/"))
    const bare = service.filter((file) => !/^(#!.*\n)?\/\*\*/.test(textOf(file)))
    expect(bare).toEqual([])
  })

  it("gives each kind of actor its protocol, table and actor", () => {
    const kinds = files.filter((file) => file.endsWith("/decide.ts")).map(dirname)
    for (const kind of kinds) {
      expect(files).toContain(`${kind}/protocol.ts`)
      expect(files).toContain(`${kind}/actor.ts`)
    }
  })

  it("silences a checker for one line only, and for one rule", () => {
    const silencing = /@ts-(ignore|nocheck)|(oxlint|eslint)-disable(?!-next-line \S+)/
    expect(matching(silencing)).toEqual([])
  })

  it("leaves nothing to be done later in its comments", () => {
    expect(matching(/\b(TODO|FIXME|XXX)\b/)).toEqual([])
  })

  it("has exact versions only, all from the public registry", () => {
    const lock = textOf("package-lock.json")
    // The packages of the workspaces are folders.
    const registries = lock.match(/"resolved": "(?!client"|create"|runtime").*/g)
    expect(registries).toBeNull()
    const manifest: Record<string, Record<string, string>> = JSON.parse(textOf("package.json"))
    const wanted = {
      ...manifest["dependencies"],
      ...manifest["devDependencies"],
      ...manifest["optionalDependencies"]
    }
    expect(
      Object.values(wanted).filter((version) => !/^(npm:[\w@/]+@)?\d+\.\d+\.\d+$/.test(version))
    )
      .toEqual([])
  })
})
