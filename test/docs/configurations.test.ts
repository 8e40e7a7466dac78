/** Configurations in docs/how-to/proxy.md and alone.md name settings that exist, and fit limits. */
import { Result } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { removedLocalDeliveryRetentionMs } from "../../actors/limits.ts"
import { jitterFraction } from "../../actors/outbound/schedule.ts"
import { clusterConfig } from "../../cluster.config.ts"
import { filesWanted } from "../../deploy/limits.ts"
import { allSettings, loadSettings } from "../../deploy/settings/settings.ts"
import { eventHeartbeatMs, longPollSecondsMax } from "../../http/limits.ts"
import { type Block, blocksOf, pages, root, textOf } from "./pages.ts"
import { fileOf } from "./proxies.ts"

const unitFile = "deploy/manifests/systemd/restante.service"

const seconds = (text: string, name: string): number =>
  Number(new RegExp(`\\b${name} (\\d+)s`).exec(text)?.[1] ?? Number.NaN)

const nginx = fileOf("nginx.conf")
const caddy = fileOf("Caddyfile")
const haproxy = fileOf("haproxy.cfg")
const several = fileOf("Caddyfile.cluster")

it.each([
  [nginx, "proxy_read_timeout"],
  [nginx, "proxy_send_timeout"],
  [haproxy, "timeout client"],
  [haproxy, "timeout server"]
])("waits for longer than streams and long polls are silent: %#", (text, name) => {
  expect(seconds(text, name)).toBeGreaterThan(longPollSecondsMax)
  expect(seconds(text, name) * 1000).toBeGreaterThan(2 * eventHeartbeatMs)
})

it("buffers nothing and bounds no body, so that the service does", () => {
  for (
    const line of [
      "proxy_buffering off;",
      "proxy_request_buffering off;",
      "client_max_body_size 0;",
      "proxy_http_version 1.1;",
      "proxy_set_header Connection \"\";",
      "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
      "proxy_pass http://restante;"
    ]
  ) expect(nginx).toContain(line)
  for (const text of [caddy, several]) expect(text).toContain("flush_interval -1")
  expect(haproxy).toContain("option forwardfor")
  expect(several).toContain("health_uri /readyz")
})

it("passes on no X-Forwarded-Host of a client; Caddy replaces it by itself", () => {
  expect(nginx).toContain("proxy_set_header X-Forwarded-Host \"\";")
  for (const text of [haproxy, textOf("deploy/manifests/haproxy.cfg")]) {
    expect(text).toContain("http-request del-header X-Forwarded-Host")
  }
})

it("does not use a connection that the service may be closing", () => {
  const serverIdleSeconds = 10
  expect(seconds(nginx, "keepalive_timeout")).toBeLessThan(serverIdleSeconds)
  expect(seconds(haproxy, "timeout http-keep-alive")).toBeLessThan(serverIdleSeconds)
  for (const text of [caddy, several]) {
    expect(seconds(text, "keepalive")).toBeLessThan(serverIdleSeconds)
  }
})

it("shows /metrics to nobody outside", () => {
  expect(nginx).toMatch(/location = \/metrics \{\s*return 404;/)
  expect(haproxy).toContain("http-request return status 404 if { path,url_dec /metrics }")
  for (const text of [caddy, several]) {
    expect(text).toMatch(/@inside path \/metrics\s*respond @inside 404/)
  }
})

/** The variables of a file of settings, each on its line. */
const variablesIn = ({ line, page, text }: Block): Readonly<Record<string, string>> =>
  Object.fromEntries(
    text.trimEnd().split("\n").map((each) => {
      const [, name = "", value = ""] = /^([A-Z][A-Z0-9_]+)=(.+)$/.exec(each) ?? []
      if (name === "") throw new Error(`${page}:${line} has no variable: ${each}`)
      return [name, value]
    })
  )

/** What a start needs beside the settings that a page shows. */
const assumed = { AUTH_ISSUER: "https://id.example.org", AUTH_AUDIENCE: "restante" }

const settingBlocks = pages.flatMap(blocksOf).filter(({ language }) => language === "ini")

describe("settings on a page", () => {
  it("are known, and are read from their variables alone", () => {
    expect(settingBlocks.length).toBeGreaterThan(6)
    const known = new Set(allSettings.map(({ variable }) => variable))
    const named = settingBlocks.flatMap((block) => Object.keys(variablesIn(block)))
    expect(named.filter((variable) => !known.has(variable))).toEqual([])
  })

  it.each(settingBlocks)("of $page:$line are accepted", (block) => {
    const variables = variablesIn(block)
    const needsIssuer = Object.keys(variables).some((name) => name.startsWith("AUTH_"))
    const loaded = loadSettings({ ...needsIssuer ? assumed : {}, ...variables })
    expect(Result.isFailure(loaded) ? loaded.failure.message : "").toBe("")
  })
})

it("names variables that are settings, in the unit of systemd and what is added to it", () => {
  const files = [unitFile, "deploy/manifests/systemd/secret-key.conf"]
  const named = files.flatMap((file) =>
    [...textOf(file).matchAll(/^Environment=(.*)$/gm)].flatMap(([, pairs = ""]) =>
      pairs.split(" ").map((pair) => pair.split("=")[0] ?? "")
    )
  )
  expect(named).toEqual(["DATA_DIR", "LOG_FORMAT", "SECRET_KEY_FILE"])
  const known = allSettings.map(({ variable }) => variable)
  expect(named.filter((variable) => !known.includes(variable))).toEqual([])
})

it("runs under systemd what there is, for as long as it needs", () => {
  const unit = textOf(unitFile)
  const [, path = ""] = /^ExecStart=\S+ \/opt\/restante\/(\S+) serve$/m.exec(unit) ?? []
  expect(textOf("docs/how-to/alone.md")).toContain(`/opt/restante/${unitFile} `)
  expect(path.startsWith("dist/") && existsSync(join(root, path)), path).toBe(true)
  const number = (name: string) => Number(new RegExp(`^${name}=(\\d+)$`, "m").exec(unit)?.[1])
  const drainSeconds = Number.parseInt(clusterConfig.limits.drainTimeout)
  expect(number("TimeoutStopSec")).toBeGreaterThan(3 * drainSeconds)
  expect(number("LimitNOFILE")).toBeGreaterThanOrEqual(filesWanted)
  const [, codes = ""] = /^RestartPreventExitStatus=(.*)$/m.exec(unit) ?? []
  for (const code of codes.split(" ")) {
    expect(textOf("docs/command-line.md")).toMatch(new RegExp(`^\\| ${code} +\\|`, "m"))
  }
})

it("recognizes a removed local delivery for longer than the default schedule waits", () => {
  const { settings: { retrySchedule } } = Result.getOrThrow(loadSettings({}))
  const longestWaitMs = Math.max(...retrySchedule) * (1 + jitterFraction)
  expect(removedLocalDeliveryRetentionMs).toBeGreaterThan(longestWaitMs)
  const hours = removedLocalDeliveryRetentionMs / 3_600_000
  expect(textOf("docs/guarantees.md")).toContain(`recognizes the repetition for ${hours} hours,`)
  expect(textOf("docs/protocol.md")).toContain(`is recognized for ${hours} h after the removal,`)
})
