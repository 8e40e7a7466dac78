/**
 * The recipe "Slack and e-mail, by Apprise" of docs/how-to/recipes.md, with Apprise from its
 * registry: its files and its commands as they stand, and a receiver instead of Slack. Apprise
 * reads the page's addresses of services, and sends to the last one by a mail server on loopback.
 */
import { spawnSync } from "node:child_process"
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync,
  writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { expectStatus, openMailbox, postXml } from "../e2e/client.ts"
import { adminToken, binary, cleanUp, eventually, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { closeReceivers, type Received, receiver } from "../e2e/receivers.ts"
import { install, type Installed } from "../foreign/install.ts"
import { endPrograms, runProgram } from "../foreign/program.ts"
import { blocksOf } from "./pages.ts"
import { type Mail, startMailServer } from "./smtp-server.ts"

const page = "docs/how-to/recipes.md"
const installedWithinMs = 600_000
const withinMs = 120_000

const folder = temporaryFolder()
const told = join(folder, "told")
const received: Array<Received> = []
let apprise: Installed
let service: Service
let base: string
let env: Readonly<Record<string, string>>

/** What Apprise posts to a service of the kind `json:`. */
const sent = () =>
  received.map(({ body }) => JSON.parse(body)).map(({ message, title }) => [title, message])

const [commands = ""] = blocksOf(page).map(({ text }) => text)
  .filter((text) => text.includes("> told\n") && text.includes("--exec 'sh tell'"))

/** The addresses of services that the page shows, one a line of the file of Apprise. */
const [addresses = ""] = blocksOf(page).filter(({ language }) => language === "text")
  .map(({ text }) => text)

/** Prints, of each line, the service that Apprise reads in it, and where it sends. */
const readServices = `import apprise, json, sys
def read(url):
    all = apprise.Apprise()
    if not all.add(url): return None
    one = all[0]
    mail = hasattr(one, "targets")
    targets = [address for _, address in one.targets] if mail else list(one.channels)
    host = getattr(one, "smtp_host", None)
    return [type(one).__name__, targets, host, one.secure if mail else None]
print(json.dumps([read(line) for line in sys.stdin.read().split()]))
`

/** Types some lines of the recipe; the last of them runs until the test ends it. */
const type = (lines: string) => {
  const ended = runProgram("sh", ["-ec", lines], { cwd: folder, env, withinMs })
  ended.catch(() => undefined)
  return ended
}

/** Deposits a notification; returns its URI. */
const deposit = async (description: string): Promise<string> => {
  const url = `http://sender.test/${received.length}`
  const body = `<notification><item><description>${description}</description><url>${url}</url>` +
    "</item></notification>"
  const answer = expectStatus(await postXml(base, "/mailboxes/alerts", body), 202)
  return answer.headers.get("location") ?? ""
}

const isTold = (href: string) =>
  eventually(
    withinMs,
    `${href} is noted`,
    () => existsSync(told) && readFileSync(told, "utf8").split("\n")[1] === href ? true : undefined
  )

beforeAll(async () => {
  apprise = await install({ registry: "PyPI", name: "apprise", version: "2.3.0" })
  service = await start({ env: { BASE_URL: "" } })
  base = `http://localhost:${service.port}`
  await openMailbox(base, "alerts")
  // The first attempt fails, as while Slack is away.
  const slack = await receiver((each, response) => {
    received.push(each)
    response.writeHead(received.length === 1 ? 503 : 200).end()
  })
  const programs = join(folder, "bin")
  mkdirSync(programs)
  mkdirSync(join(folder, ".config"))
  writeFileSync(join(folder, ".config/apprise.conf"), `${slack.replace("http:", "json:")}/hook\n`)
  const program = (name: string, text: string): void => {
    writeFileSync(join(programs, name), `#!/bin/sh\nexec ${text}\n`)
    chmodSync(join(programs, name), 0o755)
  }
  program("restante", `'${process.execPath}' '${binary}' "$@"`)
  program("apprise", `'${apprise.pathOf("apprise")}' "$@"`)
  // The recipe waits for a minute before it tries again.
  program("sleep", "/bin/sleep 0.1")
  env = {
    PATH: `${programs}:${process.env["PATH"] ?? ""}`,
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, ".config"),
    BASE_URL: base,
    RESTANTE_TOKEN: adminToken
  }
  const [tell] = blocksOf(page).filter(({ mark }) => mark?.kind === "file" && mark.text === "tell")
  writeFileSync(join(folder, "tell"), tell?.text ?? "")
}, installedWithinMs)

afterAll(() => {
  endPrograms()
  closeReceivers()
  cleanUp()
})

it("sends each notification, again until it is sent, and goes on after a restart", async () => {
  await deposit("From before")
  // The recipe begins with the current second, of which this one must not be.
  const second = Math.floor(Date.now() / 1_000)
  await eventually(
    withinMs,
    "another second",
    () => Math.floor(Date.now() / 1_000) > second ? true : undefined
  )
  const first = type(commands)
  await eventually(withinMs, "the recipe has begun", () => existsSync(told) ? true : undefined)
  await isTold(await deposit("Disk \"full\" of $HOME"))
  const once = ["Disk \"full\" of $HOME", "http://sender.test/0"]
  expect(sent()).toEqual([once, once])

  endPrograms()
  expect((await first).code).not.toBe(0)
  const later = await deposit("It burns")
  const again = commands.trimEnd().split("\n").at(-1) ?? ""
  type(again)
  await isTold(later)
  expect(sent().slice(2)).toEqual([["It burns", "http://sender.test/2"]])
})

it("shows addresses that Apprise reads as those of Slack and of a mail server with TLS", () => {
  const read = (lines: string) => {
    const { status, stderr, stdout } = spawnSync(apprise.pathOf("python"), ["-c", readServices], {
      input: lines,
      encoding: "utf8"
    })
    expect([status, stderr]).toEqual([0, expect.any(String)])
    return JSON.parse(stdout)
  }
  expect(read(addresses)).toEqual([
    ["NotifySlack", ["#alerts"], null, null],
    ["NotifyEmail", ["alice@example.com"], "mail.example.com", true]
  ])
  expect(read(addresses.replaceAll("//", "//?"))).toEqual([null, null])
})

it("sends e-mail with the description and the link of a notification", async () => {
  const mails: Array<Mail> = []
  const { port, server } = await startMailServer((mail) => void mails.push(mail))
  const mail = addresses.split("\n").find((line) => line.startsWith("mailtos:")) ?? ""
  // Without TLS, for which the page's server has a certificate.
  const here = mail.replace("mailtos:", "mailto:").replace("@example.com?", `@example.com:${port}?`)
    .replace("smtp=mail.example.com", "smtp=127.0.0.1")
  const own = join(folder, "mail")
  mkdirSync(join(own, ".config"), { recursive: true })
  writeFileSync(join(own, ".config/apprise.conf"), `${here}\n`)
  copyFileSync(join(folder, "tell"), join(own, "tell"))
  writeFileSync(join(own, "told"), "\n\n")
  const notification = {
    RESTANTE_DESCRIPTION: "The cellar is wet",
    RESTANTE_URL: "http://sender.test/cellar",
    RESTANTE_HREF: `${base}/mailboxes/alerts/notifications/1`,
    RESTANTE_RECEIVED: "2030-01-01T00:00:00Z"
  }
  const { code, errors, output } = await runProgram("sh", ["tell"], {
    cwd: own,
    env: { ...env, ...notification, HOME: own, XDG_CONFIG_HOME: join(own, ".config") },
    withinMs
  })
  server.close()
  expect([code, errors, output]).toEqual([0, expect.any(String), expect.any(String)])
  expect(mails).toMatchObject([{ credentials: "user:password", to: ["alice@example.com"] }])
  expect(mails[0]?.text).toContain("Subject: The cellar is wet")
  expect(mails[0]?.text).toContain("http://sender.test/cellar")
  expect(readFileSync(join(own, "told"), "utf8").split("\n")[1]).toBe(notification.RESTANTE_HREF)
})
