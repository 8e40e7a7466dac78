/** The files of deploy/manifests agree with the program and each other, and their programs. */
import { Result } from "effect"
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { BlockList } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { allSettings, loadSettings } from "../../deploy/settings/settings.ts"
import { spilledMemoryBytesMax } from "../../http/limits.ts"
import { HttpMetrics } from "../../http/pipeline/http-metrics.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { authority, good, key } from "../actors/outbound/certificates.ts"
import { serverBinary } from "../runtime/nats/servers.ts"
import { balancerConfiguration, natsConfiguration, replaced } from "./servers.ts"
import { at, compose, dockerfile, lastOf, listAt, root, textOf, wordAt, yamlOf } from "./sources.ts"
import { run, toolOf } from "./tools.ts"

const secrets = { ADMIN_TOKEN: "a-token", NATS_PASSWORD: "12e4#;", ROUTE_PASSWORD: "34routes" }
const cluster = compose(secrets)
const nodes = cluster.names("restante-")
const servers = cluster.names("nats-")
const folder = mkdtempSync(join(tmpdir(), "restante-deploy-"))
const settingNames = new Set(allSettings.map(({ variable }) => variable))
/** All but the templates of Helm, which helm.long.ts renders. */
const yamlFiles = readdirSync(join(root, "deploy"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".yaml") && !name.includes("helm/restante/templates/"))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The settings that a node reads from a manifest; throws for a wrong value. */
const settingsOf = (environment: Readonly<Record<string, string>>) =>
  Result.getOrThrowWith(loadSettings(environment), ({ message }) => new Error(message)).settings

/** A list, or the names of a mapping, as compose accepts both. */
const listOrKeys = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : Object.keys(value ?? {})

const secondsOf = (duration: unknown): number => {
  const [, seconds] = /^(\d+)s$/.exec(String(duration)) ?? []
  if (seconds === undefined) throw new Error(`${String(duration)} is not in seconds`)
  return Number(seconds)
}

it("has YAML files that parse", () => {
  expect(yamlFiles.length).toBeGreaterThan(4)
  for (const name of yamlFiles) {
    for (const document of yamlOf(`deploy/${name}`)) expect(document, name).toBeTypeOf("object")
  }
})

describe("the Dockerfile", () => {
  it("starts from a configurable base", () => {
    const [base, ...stages] = [
      dockerfile().find(({ name }) => name === "ARG")?.rest,
      ...dockerfile().filter(({ name }) => name === "FROM").map(({ rest }) => rest)
    ]
    expect(base).toBe("BASE_IMAGE=node:24-trixie-slim")
    const own = stages.map((stage) => stage.split(" AS ")[1])
    for (const stage of stages) expect(["${BASE_IMAGE}", ...own]).toContain(stage.split(" ")[0])
  })

  it("does not run as root, and handles signals", () => {
    expect(lastOf("USER")).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    expect(lastOf("STOPSIGNAL")).toBe("SIGTERM")
    // Without options: docs/security.md promises an amount of memory, which a larger heap exceeds.
    expect(JSON.parse(lastOf("ENTRYPOINT"))).toEqual(["node", "/app/dist/bin/restante.js"])
    expect(JSON.parse(lastOf("CMD"))).toEqual(["serve"])
    expect(JSON.parse(lastOf("HEALTHCHECK").split(" CMD ")[1] ?? "")).toContain("/app/health.mjs")
  })

  it("copies existing files that .dockerignore includes", () => {
    const included = textOf(".dockerignore").split("\n").filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1))
    const copied = dockerfile()
      .filter(({ name, rest }) => name === "COPY" && !rest.startsWith("--from"))
      .flatMap(({ rest }) => rest.split(" ").slice(0, -1))
    expect(copied.length).toBeGreaterThan(8)
    // All that is not named is left out, such as the data of version control.
    expect(textOf(".dockerignore").split("\n")).toContain("*")
    expect(included.filter((path) => path.startsWith("."))).toEqual([".npmrc"])
    for (const path of copied) {
      expect(existsSync(join(root, path)), path).toBe(true)
      const isIncluded = included.some((one) => one === path || path.startsWith(`${one}/`))
      expect([path, isIncluded]).toEqual([path, true])
    }
  })

  it("sets only settings of a node", () => {
    const set = lastOf("ENV").split(" ").map((pair) => pair.split("="))
    expect(set.filter(([name = ""]) => !settingNames.has(name))).toEqual([])
    expect(Object.fromEntries(set)).toMatchObject({ PORT: lastOf("EXPOSE") })
    expect(lastOf("VOLUME")).toBe(Object.fromEntries(set)["DATA_DIR"])
  })
})

describe("the compose file", () => {
  it("requires its secrets", () => {
    expect(() => compose({}).environmentOf("restante-1")).toThrow("NATS_PASSWORD is not set")
    expect(() => compose({}).environmentOf("nats-1")).toThrow("NATS_PASSWORD is not set")
  })

  it.each(nodes)("gives %s valid settings", (name) => {
    const environment = cluster.environmentOf(name)
    expect(Object.keys(environment).filter((variable) => !settingNames.has(variable))).toEqual([])
    const settings = settingsOf(environment)
    expect(settings.nodeId).toBe(name)
    expect(settings.natsUrl).toEqual(servers.map((server) => `nats://${server}:4222`))
    const graceMs = secondsOf(at(cluster.services, name, "stop_grace_period")) * 1000
    expect(graceMs).toBeGreaterThan(3 * settings.drainTimeout)
    expect(at(cluster.services, name, "read_only")).toBe(true)
    const [, mounted] = wordAt(cluster.services, name, "volumes", 0).split(":")
    expect(settings.secretKeyFile).toBe(mounted)
  })

  it.each(nodes)("gives %s memory for its data, of which uploads leave enough", (name) => {
    const [path, options = ""] = wordAt(cluster.services, name, "tmpfs", 0).split(":")
    expect(path).toBe(lastOf("VOLUME"))
    const [, mebibytes] = /(?:^|,)size=(\d+)m(?:,|$)/.exec(options) ?? []
    expect(Number(mebibytes) * 1024 * 1024).toBeGreaterThanOrEqual(4 * spilledMemoryBytesMax)
  })

  it("has three of each, with their own folders", () => {
    expect(nodes).toHaveLength(3)
    expect(servers).toHaveLength(3)
    const volumes = servers.map((name) => wordAt(cluster.services, name, "volumes", 2))
    expect(new Set(volumes).size).toBe(3)
  })

  it("trusts its own load balancer's address alone", () => {
    const address = wordAt(cluster.services, "balancer", "networks", "front", "ipv4_address")
    for (const name of nodes) {
      expect(cluster.environmentOf(name)["TRUSTED_PROXIES"]).toBe(address)
      expect(settingsOf(cluster.environmentOf(name)).trustedProxies).toHaveLength(1)
    }
    const [plan] = listAt(cluster.networks, "front", "ipam", "config")
    // Docker chooses the other addresses from a part of the network in which this one is not.
    const inRange = (range: string): boolean => {
      const [net = "", bits] = range.split("/")
      const list = new BlockList()
      list.addSubnet(net, Number(bits))
      return list.check(address)
    }
    expect([inRange(wordAt(plan, "subnet")), inRange(wordAt(plan, "ip_range"))])
      .toEqual([true, false])
  })

  it("keeps NATS in a network of the servers and the nodes", () => {
    const inNetwork = Object.keys(cluster.services)
      .filter((name) => listOrKeys(at(cluster.services, name, "networks")).includes("nats"))
    expect(inNetwork).toEqual([...servers, ...nodes])
    expect(at(cluster.networks, "nats", "internal")).toBe(true)
    for (const name of servers) {
      expect(at(cluster.services, name, "networks")).toEqual(["nats"])
      expect(at(cluster.services, name, "ports")).toBeUndefined()
    }
  })

  it("has a load balancer with every node", () => {
    const lines = textOf("deploy/manifests/haproxy.cfg").split("\n").map((line) => line.trim())
    expect(lines.filter((line) => line.startsWith("server ")))
      .toEqual(nodes.map((name) => `server ${name} ${name}:${lastOf("EXPOSE")}`))
    const probes = lines.flatMap((line) => /http-check send .*uri (\S+)/.exec(line)?.[1] ?? [])
    expect(probes).toEqual(["/readyz"])
  })
})

describe("probes", () => {
  it("use routes of a node", () => {
    // The routes are only matched; no handler is called, and making one needs only these.
    const settings = { contentBytesMax: 1 }
    const service = { httpMetrics: new HttpMetrics(), settings } as Service
    const patterns = resourceTable(service).map(({ pattern }) => pattern)
    const pods = yamlOf("deploy/manifests/k8s/restante.yaml")[0]
    const container = at(pods, "spec", "template", "spec", "containers", 0)
    const probes = ["startupProbe", "livenessProbe", "readinessProbe"].map((name) =>
      wordAt(container, name, "httpGet", "path")
    )
    expect(probes).toEqual(["/livez", "/livez", "/readyz"])
    expect(patterns).toEqual(expect.arrayContaining(["/livez", "/readyz"]))
    expect(textOf("deploy/health.mjs")).toContain("path: \"/readyz\"")
  })
})

describe("the servers' configuration", () => {
  const check = (file: string, environment: Readonly<Record<string, string>>) =>
    run(serverBinary(), ["-t", "-c", file], environment)

  it.each(servers)("is taken by nats-server for %s", (name) => {
    const file = natsConfiguration(join(folder, name))
    const { code, output } = check(file, cluster.environmentOf(name))
    expect(output).toContain("is valid")
    expect(code).toBe(0)
  })

  it("is valid with nkeys, and with TLS", () => {
    const own = join(folder, "tls")
    const certificates = { "tls.crt": good, "tls.key": key, "ca.crt": authority }
    const file = natsConfiguration(own, {}, (text) => {
      const nkeys = replaced(
        text,
        "\ninclude \"nats/accounts.conf\"",
        "\ninclude \"nats/nkeys.conf\""
      )
      return nkeys.replaceAll("# include \"nats/tls.conf\"", "include \"nats/tls.conf\"")
    })
    const tls = join(own, "nats/tls.conf")
    writeFileSync(tls, textOf("deploy/manifests/nats/tls.conf").replaceAll("/etc/nats/tls", own))
    for (const [name, text] of Object.entries(certificates)) writeFileSync(join(own, name), text)
    const environment = {
      ...cluster.environmentOf("nats-1"),
      NATS_NKEY: "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    }
    expect(check(file, environment)).toMatchObject({ code: 0 })
    rmSync(join(own, "tls.key"))
    expect(check(file, environment).code).not.toBe(0)
  })

  it("monitors on loopback alone, where the health check asks", () => {
    const conf = textOf("deploy/manifests/nats.conf")
    expect(conf.match(/^https?(_port)?: .*$/gm)).toEqual(["http: \"127.0.0.1:8222\""])
    for (const name of servers) {
      const [, program, ...args] = listAt(cluster.services, name, "healthcheck", "test")
      expect([program, args.at(-1)])
        .toEqual(["wget", "http://127.0.0.1:8222/healthz?js-server-only=true"])
    }
  })

  it("flushes each write, as promised", () => {
    expect(textOf("deploy/manifests/nats.conf")).toMatch(/^ {2}sync_interval: always$/m)
  })

  it("is the same in Kubernetes", () => {
    expect(textOf("deploy/manifests/k8s/nats.conf")).toBe(textOf("deploy/manifests/nats.conf"))
    expect(textOf("deploy/manifests/k8s/accounts.conf")).toBe(
      textOf("deploy/manifests/nats/accounts.conf")
    )
  })
})

it("has a load balancer that keeps the metrics inside", () => {
  expect(textOf("deploy/manifests/haproxy.cfg"))
    .toContain("  http-request return status 404 if { path,url_dec /metrics }\n")
})

it("has a load balancer's configuration that haproxy accepts", () => {
  const places = Object.fromEntries(nodes.map((name, index) => [name, 10_001 + index]))
  const file = balancerConfiguration(folder, 10_000, places)
  const { code, output } = run(toolOf("haproxy"), ["-c", "-f", file])
  expect(output).not.toMatch(/ALERT|WARNING/)
  expect(code).toBe(0)
})
