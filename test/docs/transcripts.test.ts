/**
 * Every transcript of every page, as a reader would type it, in one shell for each page. A comment
 * before any other block for a shell names the test that runs it, or the reason why none does.
 */
import { execFile } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, type Service, start } from "../e2e/process.ts"
import { blocksOf, pages, proseOf, root, shells } from "./pages.ts"
import { curlsOf, newerThanOldCurl } from "./curl.ts"
import { environmentOf, type Site, siteOf } from "./reader.ts"
import { firstStartIn, patternOf, type Step, stepsOf } from "./transcript.ts"

afterAll(cleanUp)

const runWithinMs = 150_000
/** Separates the outputs of commands. */
const mark = "\u001e"
/** Ends the background jobs and the service that a page started. */
const ending = "kill $(jobs -p) $(cat service.pid) 2>/dev/null"

const blocks = pages.flatMap(blocksOf)
const ofShells = blocks.filter(({ language }) => shells.includes(language))
const ofKind = (kind: string) => ofShells.filter(({ mark: said }) => said?.kind === kind)
const typed = ofShells.filter(({ mark: said }) => said === undefined)

/** The service of a page: started by its first command when that is `npm start`. */
const serviceOf = async (steps: ReadonlyArray<Step>): Promise<Service> => {
  const [, settings] = /^((?:\w+=\S+ )*)npm start$/.exec(steps[0]?.command ?? "") ?? []
  if (settings === undefined) return start({ env: { BASE_URL: "" } })
  const given = settings.trim().split(" ").filter((one) => one !== "").map((one) => one.split("="))
  const env = { ...Object.fromEntries(given), BASE_URL: "", ADMIN_TOKEN: "", LOG_LEVEL: "info" }
  return start({ env })
}

/** Runs commands one after the other; the output and the exit code of each. */
const outputs = async (steps: ReadonlyArray<Step>, site: Site) => {
  const { folder } = site
  const script = steps.map(({ command }) =>
    `${site.typed(command)}\nprintf '${mark}%s${mark}' "$?"\n`
  )
  const shell = ["exec 2>&1", `trap '${ending}' EXIT`, ...script].join("\n")
  const ran = promisify(execFile)("bash", ["-c", shell], {
    env: environmentOf(site),
    cwd: folder,
    timeout: runWithinMs
  })
  return (await ran).stdout.split(mark)
}

/** The home page has commands too, which somebody types with a mailbox of theirs. */
describe("the home page", () => {
  let service: Service
  let commands: ReadonlyArray<string> = []

  beforeAll(async () => {
    service = await start({ env: { BASE_URL: "", ADMIN_TOKEN: "" } })
    const accept = "text/html"
    const page = await fetch(`${service.url}/?mailbox=inbox`, { headers: { accept } })
    commands = [...(await page.text()).matchAll(/<pre>([^<]*)<\/pre>/g)].map(([, text = ""]) =>
      text
    )
  })

  afterAll(() => service.kill())

  it("has commands of an old curl, with JSON", () => {
    expect(commands).toHaveLength(2)
    expect(commands.flatMap(newerThanOldCurl)).toEqual([])
    expect(commands.filter((command) => /&lt;|[/+]xml/.test(command))).toEqual([])
  })

  it("publishes a message by them, and deposits its notification", async () => {
    const typedOnPage = async (command: string): Promise<string> => {
      const env = { PATH: process.env["PATH"] ?? "", NO_PROXY: "*" }
      return (await promisify(execFile)("bash", ["-c", command], { env })).stdout
    }
    const [publish = "", deposit = ""] = commands
    const published = await typedOnPage(publish)
    expect(published).toMatch(/^HTTP\/1.1 202 /)
    expect(published).toContain("\r\n\r\n{\"href\":")
    const [, content = ""] = /^Location: (\S+)/mi.exec(published) ?? []
    expect(await (await fetch(content)).text()).toBe("Hello!")
    expect(await typedOnPage(deposit.replace("URI of the content", content)))
      .toMatch(/^HTTP\/1.1 202 /)
  })
})

it("types nothing that the curl of Debian 11 does not have", () => {
  const others = ofShells.filter(({ mark: said }) => said !== undefined)
  const commands = [
    ...typed.flatMap(stepsOf).map(({ command }) => command),
    ...others.flatMap(({ text }) => text.replace(/\\\n/g, " ").split("\n"))
  ]
  expect(commands.flatMap(curlsOf).length).toBeGreaterThan(40)
  expect(commands.flatMap(newerThanOldCurl)).toEqual([])
})

it("finds what an old curl does not have", () => {
  const newer = [
    "curl --json '{}' http://a.test",
    "A=$(curl -sS --rate 1/s x) # and more",
    "curl -w '%header{location}' x",
    "printf x | curl -sZ x; true"
  ]
  expect(newer.map(newerThanOldCurl)).toEqual([["--json"], ["--rate"], ["%header{location}"], [
    "-Z"
  ]])
})

it("shows documents as JSON, but for the push that has no other form", () => {
  const isXml = ({ command, expected }: Step) =>
    expected.includes("<?xml") || /[/+]xml|-d ['"]</.test(command)
  expect(typed.flatMap(stepsOf).filter(isXml).map(({ command }) => command))
    .toEqual(["sleep 1; cat pushed.xml; kill %1"])
  // The reference of the protocol has both; a guide names elements as its commands write them.
  const guides = pages.filter((page) => /^docs\/how-to\/|^README|quick-start/.test(page))
  const elements = guides.filter((page) => /`<[a-z-]+>[^`]*<\/[a-z-]+>`/.test(proseOf(page)))
  expect(elements).toEqual([])
})

it("finds the pages with transcripts", () => {
  expect([...new Set(typed.map(({ page }) => page))]).toEqual(
    expect.arrayContaining(["README.md", "docs/quick-start.md", "docs/backup.md"])
  )
})

/** The pages that begin with the first start. */
const ofFirstStart = ["README.md", "docs/quick-start.md"]

it.each(ofFirstStart)(
  "%s shows the lines of the first start, but their secrets",
  async (page) => {
    const [begin, ...rest] = typed.filter((block) => block.page === page).flatMap(stepsOf)
    const service = await start({ env: { BASE_URL: "", ADMIN_TOKEN: "" } })
    const { asWritten } = await siteOf(service)
    const { lines = [] } = firstStartIn(service.output) ?? {}
    const shown = lines.map((line) => asWritten(line).replace(/~[\w-]+/, "~…"))
    expect(begin?.expected.trimEnd().split("\n").slice(-3)).toEqual(
      shown.map((line) => `  ${line}`)
    )
    if (page === "README.md") {
      const [deposit, read, token, register] = rest.map(({ command }) => command)
      expect([deposit, read]).toEqual(shown.slice(0, 2))
      expect([token, register]).toEqual(["TOKEN=rst_…", expect.stringMatching(/\/registrations$/)])
    }
    await service.kill()
  }
)

it.each([...new Set(typed.map(({ page }) => page))])("%s shows what happens", async (page) => {
  const steps = typed.filter((block) => block.page === page).flatMap(stepsOf)
  const service = await serviceOf(steps)
  const site = await siteOf(service)
  for (const { mark: said, text } of blocksOf(page).filter((one) => one.mark?.kind === "file")) {
    writeFileSync(join(site.folder, said?.text ?? ""), site.here(text))
  }
  const first = steps[0]?.command.endsWith("npm start") ? steps[0] : undefined
  if (first !== undefined) {
    const reported = site.asWritten(service.output).replace(
      `127.0.0.1:${service.port}`,
      "0.0.0.0:8080"
    )
    expect(reported.replace(/^\S+ INFO.*\n/gm, "").trimEnd()).toMatch(patternOf(first.expected))
  }
  const rest = first === undefined ? steps : steps.slice(1)
  const pieces = await outputs(rest, site)
  rest.forEach(({ command, expected }, at) => {
    const output = site.asWritten((pieces[2 * at] ?? "").trimEnd())
    expect(output, command).toMatch(patternOf(expected))
    expect(pieces[2 * at + 1], `exit code of ${command}:\n${output}`).toBe("0")
  })
  await service.kill()
}, runWithinMs + 30_000)

it.each(ofKind("run by"))("$page:$line is run by the test that it names", (block) => {
  const test = join(root, block.mark?.text ?? "")
  expect(existsSync(test), test).toBe(true)
  const text = readFileSync(test, "utf8")
  // A test that reads the page, or one that runs the same commands.
  const commands = [...block.text.matchAll(/\b(?:restante|npm) ([a-z]+)/g)]
  const gives = commands.filter(([, name = ""]) =>
    text.includes(`"${name}"`) ||
    text.includes(`npm ${name}`)
  )
  const isRead = text.includes(block.page.replace("docs/", ""))
  expect(isRead || commands.length > 0 && gives.length === commands.length).toBe(true)
})

it("hides no command in a block of another language", () => {
  const hidden = blocks.filter(({ language, text }) =>
    !shells.includes(language) &&
    /^\$ |^(?:curl|docker|git|kubectl|nats|node|npm|npx|restante|sudo|systemctl) /m.test(text)
  )
  expect(hidden.map(({ line, page }) => `${page}:${line}`)).toEqual([])
})
