/**
 * Chromium at the service behind Caddy, configured as docs/how-to/proxy.md says: what a phone needs
 * HTTPS for. The browser trusts only the certificate of this Caddy.
 */
import { createHash, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { decryptPush, newBrowser } from "../actors/web-push.ts"
import { fileOf, type Proxy, startProxy } from "../docs/proxies.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { launchBrowser, openTab, signIn, type Tab } from "./browser/browser.ts"
import { deliverPush, subscribingScript } from "./browser/chromium-push.ts"
import { type PushService, startPushService } from "./browser/push-service.ts"
import { expectStatus, openMailbox, send } from "./client.ts"
import { cleanUp, eventually, type Service, start } from "./process.ts"

const base = "https://post.example.org"
const withinMs = 60_000

let pushService: PushService
let service: Service
let caddy: Proxy
let browser: Browser
let tab: Tab

/** The digest of a certificate's public key, as Chromium's option names it. */
const keyDigest = (file: string): string => {
  const { publicKey } = new X509Certificate(readFileSync(file))
  const key = publicKey.export({ type: "spki", format: "der" })
  return createHash("sha256").update(key).digest("base64")
}

beforeAll(async () => {
  pushService = await startPushService()
  const settings = fileOf("restante.env").trim().split("\n").map((line) => line.split("="))
  const env = { ...Object.fromEntries(settings), OUTBOUND_ALLOW: "127.0.0.0/8" }
  service = await start({ env })
  const [tls = 0, plain = 0] = await freePorts(2)
  caddy = startProxy("caddy", { service: service.port, tls, plain })
  const digest = keyDigest(join(caddy.folder, "certificate.pem"))
  browser = await launchBrowser(
    `--host-resolver-rules=MAP post.example.org:443 127.0.0.1:${tls}`,
    `--ignore-certificate-errors-spki-list=${digest}`
  )
  tab = await openTab(browser)
  await eventually(withinMs, "Caddy passes requests on", async () => {
    if (caddy.running.isOver) throw new Error(caddy.running.output)
    const answer = await tab.page.goto(`${base}/readyz`).catch(() => null)
    return answer?.status() === 200 ? true : undefined
  })
})

afterAll(async () => {
  await browser?.close()
  pushService?.close()
  cleanUp()
})

it("offers the pages for installation, over TLS", async () => {
  const { page } = tab
  await page.goto(`${base}/`)
  expect(await page.evaluate("isSecureContext")).toBe(true)
  const session = await page.context().newCDPSession(page)
  const { data = "", errors, url } = await session.send("Page.getAppManifest")
  expect([errors, url]).toEqual([[], `${base}/manifest.webmanifest`])
  const { icons, start_url: begin } = JSON.parse(data)
  expect(new URL(begin, base).origin).toBe(base)
  for (const { src } of icons) {
    const status = await page.evaluate(`fetch(${JSON.stringify(src)}).then(({ status }) => status)`)
    expect([src, status]).toEqual([src, 200])
  }
})

it("signs in, registers the browser by its button, and shows what arrives", async () => {
  const subscriber = await newBrowser()
  const mailbox = new URL((await openMailbox(service.url, "phone")).path, base).pathname
  const { page } = tab
  await page.context().grantPermissions(["notifications"], { origin: base })
  await page.addInitScript(subscribingScript(pushService.at("phone"), subscriber))
  await signIn(tab, base)
  await page.getByRole("button", { name: "Sign out admin" }).waitFor()
  const cookies = await page.context().cookies()
  expect(cookies.map(({ secure }) => secure)).toEqual(cookies.map(() => true))
  expect(cookies.length).toBeGreaterThan(0)

  await page.goto(`${base}${mailbox}`)
  await page.getByRole("button", { name: "Notify me" }).click()
  await page.getByText("This browser shows what arrives here").waitFor()
  const worker = await eventually(
    withinMs,
    "the service worker runs",
    () => page.context().serviceWorkers()[0]
  )
  expect(worker.url()).toBe(`${base}/service-worker.js`)

  await page.goto(`${base}/problems`)
  const headers = { "content-type": "text/plain" }
  const body = "Tea is ready"
  expectStatus(await send(service.url, mailbox, { method: "POST", headers, body }), 202)
  const [push] = await eventually(withinMs, "a push", () => {
    const pushes = pushService.pushes("phone")
    return pushes.length > 0 ? pushes : undefined
  })
  await deliverPush(page, base, await decryptPush(subscriber, push?.body ?? Buffer.alloc(0)))
  await expect.poll(() =>
    worker.evaluate(`registration.getNotifications()
      .then((all) => all.map(({ title, body }) => [title, body]))`), { timeout: withinMs })
    .toEqual([["phone", body]])
})
