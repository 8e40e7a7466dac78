/**
 * The first screen of README.md, as a newcomer with a bare Debian 12 sees it: every command is
 * typed as it stands, from `npm start` in a fresh clone to the registration of a callback. It
 * reports how long the first deposit and the first read take, and asserts no time.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { blocksOf, shells, textOf } from "../docs/pages.ts"
import { firstStartIn, patternOf, type Step, stepsOf, withSecrets,
  writtenOrigin } from "../docs/transcript.ts"
import { cleanUp, eventually, Running } from "../e2e/process.ts"
import { freePorts, isFree } from "../runtime/nats/servers.ts"
import { baseFolder, bookworm, inRootFolder, loginEnvironment, workFolder } from "./base.ts"
import { copySources } from "./sources.ts"
import { must } from "./tools.ts"

const withinMs = 1_800_000
const page = "README.md"
const writtenPort = 8080
/** Separates the outputs of commands. */
const mark = "\u001e"

const sectionLine = textOf(page).split("\n").findIndex((line) => line.startsWith("## "))

const [begin, ...rest] = blocksOf(page).filter(({ language, line, mark: said }) =>
  shells.includes(language) && line <= sectionLine && said === undefined
).flatMap(stepsOf)

const work = workFolder()
const system = join(work, "root")
/** Where curl writes the codes of answers, beside the bodies that the page shows. */
const codes = join(system, "root/codes")

beforeAll(async () => {
  await must("cp", ["-a", await baseFolder(bookworm), system])
  copySources(join(system, "root/restante"))
  writeFileSync(
    join(system, "root/.curlrc"),
    "no-progress-meter\nwrite-out=\"%{stderr}%{http_code} \"\n"
  )
}, withinMs)

afterAll(() => {
  cleanUp()
  rmSync(work, { recursive: true, force: true })
})

/** Another port than the page's where that is taken, which a newcomer sets as well. */
const portHere = async (): Promise<number> => {
  if (await isFree(writtenPort)) return writtenPort
  const [port = 0] = await freePorts(1)
  process.stderr.write(`# port ${writtenPort} is taken: typed with PORT=${port}\n`)
  return port
}

const inClone = (command: string): ReadonlyArray<string> =>
  inRootFolder(system, `cd /root/restante && ${command}`)

/** Types commands into one shell; returns the output of each, and the time of its end. */
const typeAll = async (commands: ReadonlyArray<string>, environment: Record<string, string>) => {
  const script = commands.map((command) => `${command}\nprintf '${mark}%s${mark}' "$(date +%s%3N)"`)
  const shell = ["exec 2>/root/codes", "set -e", ...script].join("\n")
  const pieces = (await must("unshare", inClone(shell), environment)).split(mark)
  return commands.map((command, at) => ({
    command,
    output: (pieces[2 * at] ?? "").trimEnd(),
    atMs: Number(pieces[2 * at + 1])
  }))
}

it("a newcomer sends, reads and registers by typing it", async () => {
  const port = await portHere()
  const origin = `http://localhost:${port}`
  const environment = { ...loginEnvironment(), NO_PROXY: "localhost" }
  const asWritten = (text: string) =>
    text.replaceAll(origin, writtenOrigin).replaceAll(`0.0.0.0:${port}`, `0.0.0.0:${writtenPort}`)
  const { command = "", expected = "" } = begin ?? {}
  expect(command).toBe("npm start")
  const startedMs = Date.now()
  const terminal = new Running("unshare", inClone(`exec ${command}`), {
    ...environment,
    ...port === writtenPort ? {} : { PORT: String(port) }
  })
  const first = await eventually(withinMs, "the first start prints its lines", () => {
    if (terminal.isOver) throw new Error(`${command} has ended:\n${terminal.output}`)
    return firstStartIn(terminal.output)
  }, 50)
  expect(asWritten(terminal.output).trimEnd()).toMatch(patternOf(expected))
  const typed = (step: Step) => withSecrets(step.command, first).replaceAll(writtenOrigin, origin)
  const results = await typeAll(rest.map(typed), environment)
  rest.forEach((step, at) => {
    expect(asWritten(results[at]?.output ?? ""), step.command).toMatch(patternOf(step.expected))
  })
  const answered = readFileSync(codes, "utf8").trim().split(" ")
  expect(answered).toEqual(["202", "200", "201"])
  const [deposit, read, address = ""] = first.lines
  expect(results.slice(0, 2).map((one) => one.command)).toEqual([deposit, read])
  expect(results[1]?.output).toContain("\"description\":\"hello\"")
  const html = await fetch(address, { headers: { accept: "text/html" } })
  expect(await html.text()).toContain(">hello</a>")
  const seconds = results.slice(0, 2).map(({ atMs }) => ((atMs - startedMs) / 1000).toFixed(1))
  process.stderr.write(
    `# ${bookworm.suite}, Node ${bookworm.node}: ${seconds[0]} s from ${command} to the first 202, `
      + `${seconds[1]} s to the message read\n`
  )
  await terminal.stop()
  expect(terminal.isOver).toBe(true)
}, withinMs)
