/**
 * A real browser: Debian's chromium, driven by playwright-core. It records the errors of every
 * visited page: of scripts, of the console, of the content security policy.
 */
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium,
  type Page } from "playwright-core"
import { expect } from "vitest"
import { adminToken, eventually } from "../process.ts"

const updatedWithinMs = 120_000

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
const screenshots = fileURLToPath(new URL("../../../test-results/", import.meta.url))

/** The browser's executable; throws when there is none. */
const executable = (): string => {
  const folders = (process.env["PATH"] ?? "").split(":")
  const candidates = [
    process.env["CHROMIUM_PATH"] ?? "",
    ...names.flatMap((name) => folders.map((folder) => join(folder, name)))
  ]
  const found = candidates.find((path) => path !== "" && existsSync(path))
  if (found === undefined) {
    throw new Error("chromium is missing: install it, or set CHROMIUM_PATH to its executable")
  }
  return found
}

/** Starts the browser, with more options of its command line. */
export const launchBrowser = (...options: ReadonlyArray<string>): Promise<Browser> =>
  chromium.launch({
    executablePath: executable(),
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...options
    ]
  })

/** A busy machine draws a page slowly; this only ends what hangs. */
const hangMs = 120_000

/** Sends the credentials of the account admin with every request, as a program does. */
export const adminHeaders = {
  Authorization: `Basic ${Buffer.from(`admin:${adminToken}`).toString("base64")}`
}

/** Waits for the entry of the paint, which a browser adds after it. */
const firstPaint = `new Promise((resolve) => {
  const observer = new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName("first-contentful-paint")
    if (paint !== undefined) resolve(paint.startTime)
  })
  observer.observe({ type: "paint", buffered: true })
})`

const widths = { phone: { width: 360, height: 740 }, desk: { width: 1280, height: 800 } }

export interface Person {
  /** Sends the credentials of the account admin. */
  readonly admin?: boolean
  readonly script?: boolean
  readonly at?: keyof typeof widths
  readonly scheme?: "light" | "dark"
}

const capturesMax = 5

/** Saves a screenshot. Chromium has none when its compositor has not yet drawn the page. */
const capture = async (page: Page, path: string, fullPage = true): Promise<void> => {
  for (let attempt = 1;; attempt++) {
    try {
      await page.screenshot({ path, fullPage })
      return
    } catch (error) {
      const isUndrawn = String(error).includes("Unable to capture screenshot")
      if (!isUndrawn || attempt === capturesMax) throw error
    }
  }
}

/** A tab with its own cookies and storage. */
export class Tab {
  readonly page: Page
  private readonly context: BrowserContext
  private readonly faults: Array<string> = []
  private readonly expected = new Set<number>()
  private readonly tolerated = new Set<string>()

  constructor(context: BrowserContext, page: Page) {
    this.context = context
    this.page = page
    page.on("pageerror", (error) => this.faults.push(String(error)))
    page.on("console", (message) => {
      if (message.type() !== "error" && message.type() !== "warning") return
      const status = /the server responded with a status of (\d{3})/.exec(message.text())?.[1]
      if (this.expected.has(Number(status))) return
      if ([...this.tolerated].some((one) => message.text().includes(one))) return
      this.faults.push(`${message.text()} at ${message.location().url}`)
    })
  }

  /** The test expects a response with this status, so it is no fault of the page. */
  expects(status: number): this {
    this.expected.add(status)
    return this
  }

  /** The browser reports this by itself, with this text. */
  tolerates(text: string): this {
    this.tolerated.add(text)
    return this
  }

  /**
   * Expects that the page fits the width and has no errors; saves a screenshot, of the whole page
   * or of the screen.
   */
  async inspect(name: string, isWhole = true): Promise<void> {
    const { page } = this
    // A page without its stylesheet, which is still loading, may have any width.
    await page.waitForLoadState("load")
    const overhang = await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    expect(overhang, `${name} is wider than the screen`).toBe(0)
    // The user can scroll wide tables of figures; the cells of a record are all in sight.
    const hidden = await page.evaluate(
      `[...document.querySelectorAll(".scroll:not(.rows:not(.cards), .figures)")]` +
        `.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText)`
    )
    expect(hidden, `${name} has a table of which a part is out of sight`).toEqual([])
    mkdirSync(screenshots, { recursive: true })
    await capture(page, `${screenshots}${name}.png`, isWhole)
    expect(this.faults, `${name} has errors`).toEqual([])
  }

  /** Saves a screenshot of the whole page under a name, which may have folders. */
  async save(name: string): Promise<void> {
    await capture(this.page, `${screenshots}${name}.png`)
  }

  /** When the open page first showed something, in ms after its request. */
  async firstContentfulPaintMs(): Promise<number> {
    return Number(await this.page.evaluate(firstPaint))
  }

  /** Waits for a text on the page: a script updates it, else the user loads the page again. */
  async appears(text: string, isScripted: boolean): Promise<void> {
    const found = this.page.locator("main").getByText(text).first()
    if (isScripted) return found.waitFor()
    await eventually(updatedWithinMs, text, async () => {
      if (await found.count() > 0) return true
      await this.page.reload()
      return undefined
    }, 100)
  }

  async heading(): Promise<string> {
    return this.page.locator("h1").innerText()
  }

  /** Expects no errors so far; afterwards the tab tolerates no failed response. */
  check(): void {
    expect(this.faults).toEqual([])
    this.expected.clear()
  }

  async close(): Promise<void> {
    await this.context.close()
    this.check()
  }
}

/** Signs the tab's browser in as the account admin, by the form. */
export const signIn = async ({ page }: Tab, base: string, token = adminToken): Promise<void> => {
  await page.goto(`${base}/sign-in`)
  await page.getByLabel("Account").fill("admin")
  await page.getByLabel("Token").fill(token)
  await page.getByRole("main").getByRole("button", { name: "Sign in" }).click()
}

/** Opens a tab of a new context; `more` are further options of that. */
export const openTab = async (
  browser: Browser,
  person: Person = {},
  more: BrowserContextOptions = {}
): Promise<Tab> => {
  const { admin = false, at = "phone", scheme = "light", script = true } = person
  const context = await browser.newContext({
    viewport: widths[at],
    colorScheme: scheme,
    // A hidden or busy browser may never end a smooth scroll.
    reducedMotion: "reduce",
    javaScriptEnabled: script,
    ...admin ? { extraHTTPHeaders: adminHeaders } : {},
    ...more
  })
  context.setDefaultTimeout(hangMs)
  return new Tab(context, await context.newPage())
}
