/**
 * Every block of code of every page has a test, or a reason why none runs it. This holds the list
 * of the tests; `transcripts.test.ts` is that of blocks for a shell.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Block, blocksOf, pages, root, shells, textOf } from "./pages.ts"
import { stepsOf } from "./transcript.ts"

/** A test of all blocks of one language on a page. */
interface PageCheck {
  readonly page: string
  readonly language: string
  /** How many there are, so that a new block is not taken for tested. */
  readonly blocks: number
  readonly test: string
}

const pageChecks: ReadonlyArray<PageCheck> = [
  ["README.md", "ts", 1, "client/docs.test.ts"],
  ["client/README.md", "ts", 1, "client/docs.test.ts"],
  ["client/README.md", "text", 1, "client/docs.test.ts"],
  ["client/go/README.md", "go", 4, "client/go.long.ts"],
  ["client/go/README.md", "text", 4, "client/go.long.ts"],
  ["client/python/README.md", "python", 4, "client/python.long.ts"],
  ["client/python/README.md", "text", 4, "client/python.long.ts"],
  ["docs/client.md", "ts", 9, "client/docs.test.ts"],
  ["docs/client.md", "text", 8, "client/docs.test.ts"],
  ["docs/how-to/actor.md", "ts", 5, "docs/actor.test.ts"],
  ["docs/how-to/proxy.md", "nginx", 1, "docs/proxies.long.ts"],
  ["docs/how-to/proxy.md", "haproxy", 1, "docs/proxies.long.ts"],
  ["docs/how-to/proxy.md", "caddyfile", 2, "docs/proxies.long.ts"],
  ["docs/how-to/recipes.md", "text", 1, "docs/apprise.long.ts"],
  ["docs/how-to/recipes.md", "yaml", 2, "docs/yaml.test.ts"],
  ["docs/identity.md", "http", 2, "docs/messages.test.ts"],
  ["docs/identity.md", "json", 1, "docs/messages.test.ts"],
  ["docs/interoperation.md", "json", 1, "docs/messages.test.ts"],
  ["docs/interoperation.md", "ts", 1, "docs/generated-client.long.ts"],
  ["docs/kubernetes.md", "yaml", 3, "docs/yaml.test.ts"],
  ["docs/platforms.md", "text", 1, "e2e/platforms.long.ts"],
  ["docs/queries.md", "http", 1, "docs/messages.test.ts"],
  ["docs/regions.md", "conf", 2, "docs/regions.test.ts"],
  ["docs/runtime/README.md", "ts", 1, "docs/runtime/pages.test.ts"],
  ["docs/runtime/patterns.md", "ts", 8, "docs/runtime/patterns.test.ts"],
  ["docs/runtime/tutorial.md", "json", 2, "docs/runtime/tutorial.test.ts"],
  ["docs/runtime/tutorial.md", "ts", 8, "docs/runtime/tutorial.test.ts"],
  ["docs/subjects.md", "js", 1, "runtime/nats/subjects.test.ts"],
  ["runtime/README.md", "ts", 6, "runtime/examples.test.ts"],
  ["runtime/http/README.md", "ts", 2, "runtime/http/server.test.ts"],
  ["runtime/inspector/README.md", "ts", 1, "runtime/inspector/inspector.test.ts"],
  ["runtime/testing/README.md", "ts", 4, "runtime/testing/examples.test.ts"]
].map(([page, language, blocks, test]) => ({
  page: String(page),
  language: String(language),
  blocks: Number(blocks),
  test: `test/${test}`
}))

/** Tests of all blocks of a language, on any page. */
const languageChecks: Readonly<Record<string, string>> = {
  crontab: "test/docs/crontabs.test.ts",
  ini: "test/docs/configurations.test.ts",
  mermaid: "test/docs/diagrams.long.ts"
}

/** The number of blocks in each page that need more than a test has. */
const notRun: Readonly<Record<string, number>> = {
  "README.md": 1,
  "create/README.md": 1,
  "docs/cluster.md": 2,
  "docs/how-to/alone.md": 5,
  "docs/how-to/proxy.md": 1,
  "docs/how-to/secrets.md": 1,
  "docs/how-to/upgrade.md": 1,
  "docs/identity.md": 1,
  "docs/kubernetes.md": 3,
  "docs/nats.md": 1,
  "docs/regions.md": 3,
  "test/simulation/README.md": 1
}

const blocks = pages.flatMap(blocksOf)
const isShell = ({ language }: Block): boolean => shells.includes(language)

/** The commands of a page that `transcripts.test.ts` types. */
const typedOn = (page: string): ReadonlyArray<string> =>
  blocks.filter((block) => block.page === page && isShell(block) && block.mark === undefined)
    .flatMap(stepsOf).map(({ command }) => command)

/** The last part of a path, by which a command names a file. */
const baseOf = (path: string): string => path.split("/").at(-1) ?? path

/** Whether a command of the page names the file that the block is saved as. */
const isUsed = ({ mark, page }: Block): boolean => {
  const name = baseOf(mark?.text ?? "")
  const named = new RegExp(`(?<![\\w.-])${name.replaceAll(".", "\\.")}(?![\\w-]|\\.\\w)`)
  return typedOn(page).some((command) => named.test(command))
}

/** `deploy/packages.test.ts` compares these pages with the types that they are made from. */
const isGenerated = (page: string): boolean => page.startsWith("docs/runtime/reference/")

const isOnList = ({ language, page }: Block): boolean =>
  language in languageChecks || isGenerated(page) ||
  pageChecks.some((check) => check.page === page && check.language === language)

const isChecked = (block: Block): boolean => {
  if (block.mark?.kind === "not run") return true
  if (block.mark?.kind === "file" && isUsed(block)) return true
  return isShell(block) && block.mark?.kind !== "file" || isOnList(block)
}

describe("a block of code", () => {
  it("has fences that the tests read: three backticks and a language, and nothing else", () => {
    const fences = pages.flatMap((page) =>
      textOf(page).split("\n").filter((line) => /^[\s>*-]*(?:```|~~~)/.test(line))
        .map((line) => `${page}: ${line}`)
    )
    expect(fences.filter((line) => !/: *```\w*$/.test(line))).toEqual([])
    expect(fences).toHaveLength(2 * blocks.length)
  })

  it("has a test, or says why not", () => {
    const unchecked = blocks.filter((block) => !isChecked(block))
    expect(unchecked.map(({ language, line, page }) => `${page}:${line} ${language}`)).toEqual([])
  })

  it("says why it is not run, where it needs more than a test has", () => {
    const counts: Record<string, number> = {}
    for (const { mark, page } of blocks.filter((block) => block.mark?.kind === "not run")) {
      expect(mark?.text.length, page).toBeGreaterThan(10)
      counts[page] = (counts[page] ?? 0) + 1
    }
    expect(counts).toEqual(notRun)
  })
})

describe("the list of tests", () => {
  it.each(pageChecks)("has $test for $blocks of $language on $page", (check) => {
    const { language, page, test } = check
    const found = blocks.filter((block) => block.page === page && block.language === language)
    expect(found).toHaveLength(check.blocks)
    // A test that does not name the page cannot read it.
    expect(readFileSync(join(root, test), "utf8")).toContain(page.replace(/^docs\//, ""))
  })

  it.each(Object.entries(languageChecks))("has a test for every %s", (language, test) => {
    expect(blocks.some((block) => block.language === language)).toBe(true)
    expect(existsSync(join(root, test)), test).toBe(true)
    const text = readFileSync(join(root, test), "utf8")
    expect(text).toContain(`"${language}"`)
    expect(text).toContain("pages.flatMap(blocksOf)")
  })
})
