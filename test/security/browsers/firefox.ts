/**
 * Debian's firefox-esr, driven by WebDriver BiDi (W3C): a few commands as JSON over a WebSocket,
 * for which this needs no library.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { WebSocket } from "undici"
import { eventually, within } from "../../e2e/process.ts"
import { type BrowserTab, executableOf, observer, type Sighting, sightingOf,
  type TestBrowser } from "./tab.ts"

const startsWithinMs = 60_000
const loadsWithinMs = 60_000

/** Nothing that the browser does by itself, and no question before a file is saved. */
const preferences = {
  "app.update.enabled": false,
  "app.normandy.enabled": false,
  "browser.aboutwelcome.enabled": false,
  "browser.backup.enabled": false,
  "browser.cache.disk.enable": false,
  "browser.download.useDownloadDir": true,
  "browser.download.always_ask_before_handling_new_types": false,
  "browser.download.alwaysOpenPanel": false,
  "browser.newtabpage.enabled": false,
  "browser.safebrowsing.downloads.enabled": false,
  "browser.safebrowsing.malware.enabled": false,
  "browser.safebrowsing.phishing.enabled": false,
  "browser.shell.checkDefaultBrowser": false,
  "browser.startup.page": 0,
  "datareporting.policy.dataSubmissionEnabled": false,
  "dom.ipc.processCount": 2,
  "dom.ipc.processPrelaunch.enabled": false,
  "extensions.update.enabled": false,
  "media.gmp-manager.updateEnabled": false,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "network.dns.native-is-localhost": true,
  "services.settings.server": "data:,none",
  "toolkit.telemetry.enabled": false
}

/** Preferences of Firefox: names and values. */
export type Preferences = Readonly<Record<string, string | number | boolean>>

const profileIn = (folder: string, more: Preferences): void => {
  const lines = Object.entries({ ...preferences, "browser.download.dir": folder, ...more })
    .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`)
  writeFileSync(join(folder, "user.js"), lines.join(""))
}

interface Answered {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** A session of WebDriver BiDi. */
class BidiSession {
  private readonly socket: WebSocket
  private readonly onEvent: (method: string, parameters: unknown) => void
  private readonly pending = new Map<number, Answered>()
  private lastId = 0

  constructor(socket: WebSocket, onEvent: (method: string, parameters: unknown) => void) {
    this.socket = socket
    this.onEvent = onEvent
    socket.addEventListener("message", ({ data }) => this.receive(String(data)))
    socket.addEventListener("close", () => {
      for (const { reject } of this.pending.values()) reject(new Error("firefox has ended"))
    })
  }

  private receive(text: string): void {
    // The browser sends no other shapes (WebDriver BiDi, section 3.1).
    const message = JSON.parse(text) as {
      readonly type: "success" | "error" | "event"
      readonly id: number
      readonly result: unknown
      readonly error: string
      readonly message: string
      readonly method: string
      readonly params: unknown
    }
    if (message.type === "event") return this.onEvent(message.method, message.params)
    const waiting = this.pending.get(message.id)
    this.pending.delete(message.id)
    if (message.type === "success") waiting?.resolve(message.result)
    else waiting?.reject(new Error(`${message.error}: ${message.message}`))
  }

  send(method: string, params: object): Promise<unknown> {
    const id = ++this.lastId
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject })
      this.socket.send(JSON.stringify({ id, method, params }))
    })
  }

  close(): void {
    this.socket.close()
  }
}

/** The events that end a navigation (WebDriver BiDi, section 7.3.4), with or without a document. */
const navigationEnds = ["browsingContext.load", "browsingContext.downloadWillBegin"]

/** The navigations that have ended, by context and URI, and who waits for one. */
class Navigations {
  private readonly ended = new Set<string>()
  private readonly waiting = new Map<string, () => void>()

  end(navigation: string): void {
    const resolve = this.waiting.get(navigation)
    if (resolve === undefined) this.ended.add(navigation)
    else resolve()
    this.waiting.delete(navigation)
  }

  forget(navigation: string): void {
    this.ended.delete(navigation)
  }

  untilEnd(navigation: string): Promise<void> {
    return new Promise((resolve) => {
      if (this.ended.delete(navigation)) resolve()
      else this.waiting.set(navigation, resolve)
    })
  }
}

class FirefoxTab implements BrowserTab {
  private readonly session: BidiSession
  private readonly navigations: Navigations
  private readonly context: string
  private readonly seen: Array<Sighting>

  constructor(
    session: BidiSession,
    navigations: Navigations,
    context: string,
    seen: Array<Sighting>
  ) {
    this.session = session
    this.navigations = navigations
    this.context = context
    this.seen = seen
  }

  async visit(url: string): Promise<void> {
    const { context, navigations } = this
    const loaded = `${context} ${new URL(url).href}`
    navigations.forget(loaded)
    try {
      await this.session.send("browsingContext.navigate", { context, url, wait: "complete" })
    } catch (error) {
      const text = String(error)
      // A frame of this document, or of the one before, got its error page: no reason to end.
      if (text.includes("Address rejected")) {
        return within(loadsWithinMs, `firefox loads ${url}`, navigations.untilEnd(loaded))
      }
      // A file that is saved is no document, nor is an answer that this browser shows in no way.
      if (!text.includes("unknown error")) throw error
    }
  }

  async show(): Promise<void> {
    await this.session.send("browsingContext.activate", { context: this.context })
  }

  async evaluate(expression: string): Promise<unknown> {
    const answer = await this.session.send("script.evaluate", {
      expression: `Promise.resolve(${expression}).then((value) => JSON.stringify(value))`,
      target: { context: this.context },
      awaitPromise: true
    }) as { readonly type: string; readonly result?: { readonly value?: string } }
    if (answer.type !== "success") throw new Error(JSON.stringify(answer))
    return JSON.parse(answer.result?.value ?? "null")
  }

  sightings(): ReadonlyArray<Sighting> {
    return this.seen.splice(0)
  }
}

class Firefox implements TestBrowser {
  private readonly process: ChildProcess
  private readonly folder: string
  private readonly session: BidiSession
  private readonly navigations: Navigations
  private readonly seenIn: Map<string, Array<Sighting>>

  constructor(
    process: ChildProcess,
    folder: string,
    session: BidiSession,
    navigations: Navigations,
    seenIn: Map<string, Array<Sighting>>
  ) {
    this.process = process
    this.folder = folder
    this.session = session
    this.navigations = navigations
    this.seenIn = seenIn
  }

  async openTab(): Promise<BrowserTab> {
    const { userContext } = await this.session.send("browser.createUserContext", {}) as {
      readonly userContext: string
    }
    const channel = userContext
    const seen: Array<Sighting> = []
    this.seenIn.set(channel, seen)
    await this.session.send("script.addPreloadScript", {
      functionDeclaration: observer,
      arguments: [{ type: "channel", value: { channel } }],
      userContexts: [userContext]
    })
    const { context } = await this.session.send("browsingContext.create", {
      type: "tab",
      userContext
    }) as { readonly context: string }
    this.seenIn.set(context, seen)
    return new FirefoxTab(this.session, this.navigations, context, seen)
  }

  async close(): Promise<void> {
    this.session.close()
    const ended = once(this.process, "close")
    this.process.kill("SIGTERM")
    await ended
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Passes what the documents report to the tab of their channel, and ends navigations. */
const observe =
  (seenIn: ReadonlyMap<string, Array<Sighting>>, navigations: Navigations) =>
  (method: string, parameters: unknown): void => {
    // All events here have these members (WebDriver BiDi, sections 7.3 and 7.6).
    const { channel, context, data, message, url } = parameters as {
      readonly channel: string
      readonly context: string
      readonly data?: { readonly value?: string }
      readonly message?: string
      readonly url?: string
    }
    if (navigationEnds.includes(method)) navigations.end(`${context} ${url ?? ""}`)
    else if (method === "script.message") {
      seenIn.get(channel)?.push(sightingOf(data?.value ?? ""))
    } else seenIn.get(context)?.push({ kind: "dialog", text: message ?? "" })
  }

/** Starts it with a profile of its own, and with more preferences. */
export const startFirefox = async (more: Preferences = {}): Promise<TestBrowser> => {
  const folder = mkdtempSync(join(tmpdir(), "restante-firefox-"))
  profileIn(folder, more)
  const program = executableOf("FIREFOX_PATH", ["firefox-esr", "firefox"])
  const options = ["--headless", "--no-remote", "--remote-debugging-port", "0"]
  const child = spawn(program, [...options, "--profile", folder], {
    env: { PATH: process.env["PATH"] ?? "", HOME: folder, MOZ_CRASHREPORTER_DISABLE: "1" },
    stdio: ["ignore", "ignore", "pipe"]
  })
  process.on("exit", () => child.kill("SIGKILL"))
  let output = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (output.length < 100_000) output += text
  })
  const origin = await eventually(startsWithinMs, "firefox listens", () => {
    if (child.exitCode !== null) throw new Error(`firefox has ended:\n${output}`)
    return /WebDriver BiDi listening on (ws:\S+)/.exec(output)?.[1]
  })
  const socket = new WebSocket(`${origin}/session`)
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve)
    socket.addEventListener("error", ({ error }) => reject(error))
  })
  const seenIn = new Map<string, Array<Sighting>>()
  const navigations = new Navigations()
  const session = new BidiSession(socket, observe(seenIn, navigations))
  await session.send("session.new", {
    capabilities: { alwaysMatch: { unhandledPromptBehavior: { default: "dismiss" } } }
  })
  await session.send("session.subscribe", {
    events: ["script.message", "browsingContext.userPromptOpened", ...navigationEnds]
  })
  return new Firefox(child, folder, session, navigations, seenIn)
}
