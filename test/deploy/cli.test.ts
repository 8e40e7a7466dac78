/** The built command line as a process. */
import { Result } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { hostname, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { clusterConfig } from "../../cluster.config.ts"
import { loadSettings } from "../../deploy/settings/settings.ts"

const main = fileURLToPath(new URL("../../dist/bin/restante.js", import.meta.url))

const path = process.env["PATH"]

/** A folder of configuration without contexts: a developer's own would change the commands. */
const noContexts = { XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), "restante-cli-")) }

const restante = (args: ReadonlyArray<string>, env: Record<string, string> = {}) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [main, ...args], {
    encoding: "utf8",
    env: { ...(path === undefined ? {} : { PATH: path }), ...noContexts, ...env },
    timeout: 20_000
  })
  return { status, stderr, stdout }
}

interface Row {
  readonly name: string
  readonly value: string | null
  readonly source: string
  readonly env: string
  readonly flag: string | null
}

const config = (args: ReadonlyArray<string> = [], env: Record<string, string> = {}) => {
  const { status, stdout } = restante(["config", "--json", ...args], env)
  expect(status).toBe(0)
  const rows: ReadonlyArray<Row> = JSON.parse(stdout)
  return (name: string) => rows.find((row) => row.name === name)
}

describe("restante", () => {
  it("shows its commands, its version and completions", () => {
    const help = restante(["--help"])
    expect(help.status).toBe(0)
    for (const command of ["serve", "config", "account", "check", "send", "outbox", "watch"]) {
      expect(help.stdout).toContain(command)
    }
    expect(restante(["--version"])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/\d+\.\d+\.\d+/)
    })
    expect(restante(["--completions", "bash"]).stdout).toContain("serve")
  })

  it("takes help, and help of a command, as --help", () => {
    expect(restante(["help"])).toEqual(restante(["--help"]))
    const named = restante(["help", "outbox", "retry"])
    expect(named).toEqual(restante(["outbox", "retry", "--help"]))
    expect(named).toMatchObject({ status: 0, stdout: expect.stringContaining("--since") })
  })

  it.each([
    [["unknown"], "restante", "unknown"],
    [["serve", "--prot", "1"], "restante serve", "--prot"],
    [["account", "add"], "restante account add", "name"],
    [["account", "add", "A b"], "restante account add", "A b"]
  ])("exits 2 on a wrong command line, and says what is wrong: %s", (args, command, fault) => {
    const { status, stderr, stdout } = restante(args)
    expect(status).toBe(2)
    const [first, second, ...more] = stderr.trimEnd().split("\n")
    expect(first).toMatch(/^restante: /)
    expect(first).toContain(fault)
    expect([second, more]).toEqual([`restante: try \`${command} --help\``, []])
    // A script would take help on standard output for the result.
    expect(stdout).toBe("")
  })

  it("shows the commands of a group that was named alone", () => {
    const { status, stderr, stdout } = restante(["account"])
    expect([status, stdout]).toEqual([2, ""])
    expect(stderr).toContain("restante account <subcommand>")
  })

  it("lists each setting once, with one variable and one flag of its own", () => {
    const { stdout } = restante(["config", "--json"])
    const rows: ReadonlyArray<Row> = JSON.parse(stdout)
    expect(new Set(rows.map((row) => row.name)).size).toBe(rows.length)
    expect(new Set(rows.map((row) => row.env)).size).toBe(rows.length)
    const fixed = ["PORT", "HOST", "BASE_URL", "DATA_DIR", "ADMIN_TOKEN", "LOG_LEVEL"]
    const cluster = ["NATS_URL", "NODE_ID", "NATS_CREDS", "NATS_CA", "CLUSTER_BUCKETS"]
    for (const name of [...fixed, ...cluster, "RETRY_SCHEDULE", "OUTBOUND_ALLOW"]) {
      expect(rows.map((row) => row.env)).toContain(name)
    }
  })

  it("prefers a flag to the environment, and the environment to the defaults", () => {
    expect(config()("port")).toMatchObject({ value: "8080", source: "cluster.config.ts" })
    const env = { PORT: "9000" }
    expect(config([], env)("port")).toMatchObject({ value: "9000", source: "environment PORT" })
    expect(config(["--port", "0"], env)("port")).toMatchObject({
      value: "0",
      source: "flag --port"
    })
  })

  it("derives the base URL from the port, and counts empty variables as unset", () => {
    expect(config([], { PORT: "9000", BASE_URL: "" })("baseUrl")).toMatchObject({
      value: "http://localhost:9000",
      source: "port"
    })
  })

  it.each(["NATS_PASSWORD", "NATS_TOKEN", "NATS_NKEY_SEED"])("never shows %s", (env) => {
    const { stderr, stdout } = restante(["config"], { [env]: "hunter2hunter2" })
    expect(stdout).toContain("<set>")
    expect(stdout + stderr).not.toContain("hunter2")
    const wrong = restante(["config"], { [env]: "hunter2 hunter2" })
    expect(wrong.status).toBe(78)
    expect(wrong.stdout + wrong.stderr).not.toContain("hunter2")
  })

  it("never shows the admin token", () => {
    const { stderr, stdout } = restante(["config"], { ADMIN_TOKEN: "hunter2hunter2" })
    expect(stdout).toContain("<set>")
    expect(stdout + stderr).not.toContain("hunter2")
    const wrong = restante(["config"], { ADMIN_TOKEN: "hunter2 hunter2" })
    expect(wrong.status).toBe(78)
    expect(wrong.stdout + wrong.stderr).not.toContain("hunter2")
  })

  it.each([
    ["PORT", "port", "80x"],
    ["PORT", "port", "65536"],
    ["BASE_URL", "baseUrl", "ftp://example.org"],
    ["BASE_URL", "baseUrl", "https://example.org/path"],
    ["BASE_URL", "baseUrl", "https://user@example.org"],
    ["CONTENT_BASE_URL", "content.baseUrl", "https://content.example.org/x"],
    ["LOG_LEVEL", "log.level", "loud"],
    ["RETRY_SCHEDULE", "outgoing.retrySchedule", "1s,soon"],
    ["RETRY_SCHEDULE", "outgoing.retrySchedule", ","],
    ["OUTBOUND_ALLOW", "outbound.allow", "127.0.0.0/33"],
    ["CONTENT_BYTES_MAX", "content.bytesMax", "1 gig"],
    ["CONTENT_BYTES_MAX", "content.bytesMax", "0"],
    ["RETENTION", "mailboxes.retention", "P"],
    ["IDLE_TIMEOUT", "limits.idleTimeout", "0s"],
    ["NATS_URL", "nats.url", "http://127.0.0.1:4222"],
    ["NATS_URL", "nats.url", "nats://user@127.0.0.1:4222"],
    ["NATS_REPLICAS", "nats.replicas", "2"],
    ["NODE_ID", "cluster.nodeId", "node 1"],
    ["CLUSTER_BUCKETS", "cluster.buckets", "0"]
  ])("stops on %s (%s) = %s, naming all there is to know", (env, name, value) => {
    for (const command of ["config", "serve"]) {
      const { status, stderr } = restante([command], { [env]: value })
      expect(status).toBe(78)
      expect(stderr).toContain(`${name} is ${JSON.stringify(value)} (from environment ${env})`)
      expect(stderr).toContain("expected ")
    }
  })

  it.each([
    ["STORE", "STORAGE_ENGINE"],
    ["OUTGOING_KEEP", "OUTGOING_RETENTION"],
    ["RESIDENT_ACTORS", "ACTIVATIONS_MAX"],
    ["ACTOR_QUEUE_MAX", "INBOX_MAX"]
  ])("stops on the retired %s, and names %s", (retired, replacement) => {
    const flagOf = (variable: string) => `--${variable.toLowerCase().replaceAll("_", "-")}`
    for (const command of ["config", "serve"]) {
      expect(restante([command], { [retired]: "1" })).toMatchObject({
        status: 78,
        stderr: `restante: the environment has ${retired}, which is no longer a setting: ` +
          `set ${replacement} instead\n`
      })
      expect(restante([command, flagOf(retired), "1"])).toMatchObject({
        status: 78,
        stderr: `restante: the command line has ${flagOf(retired)}, which is no longer a flag: ` +
          `use ${flagOf(replacement)}\n`
      })
    }
    expect(restante(["config"], { [retired]: "" }).status).toBe(0)
  })

  it.each([
    ["http://localhost:81", {}, /on the host of .*BASE_URL.*: use another host name/],
    [
      "https://POST.example.org:8443",
      { BASE_URL: "https://post.example.org" },
      /on the host of .*BASE_URL.*: use another host name/
    ],
    [
      "https://post.example.org.",
      { BASE_URL: "https://post.example.org" },
      /on the host of .*BASE_URL.*: use another host name/
    ],
    [
      "https://post.example.org",
      { BASE_URL: "https://post.example.org." },
      /on the host of .*BASE_URL.*: use another host name/
    ],
    [
      "https://content.example.net.:8443",
      { BASE_URL: "https://post.example.org" },
      /whose host name ends with a dot, .*: remove the dot/
    ],
    [
      "http://content.example.net",
      { BASE_URL: "https://post.example.org" },
      /without TLS, while BASE_URL has it.*; use https/
    ]
  ])("stops on CONTENT_BASE_URL = %s beside %o", (contentBaseUrl, env, problem) => {
    for (const command of ["config", "serve"]) {
      const refused = restante([command], { ...env, CONTENT_BASE_URL: contentBaseUrl })
      expect(refused).toMatchObject({ status: 78, stderr: expect.stringMatching(problem) })
      expect(refused.stderr).toContain(`content.baseUrl is ${contentBaseUrl.toLowerCase()}`)
    }
    const separate = { BASE_URL: "https://post.example.org" }
    const accepted = { ...separate, CONTENT_BASE_URL: "https://content.example.net" }
    expect(restante(["config"], accepted).status).toBe(0)
  })

  it("refuses a configuration key that is not a setting", () => {
    const { outgoing } = clusterConfig
    const config = { ...clusterConfig, store: { engine: "leveldb" }, prot: 80 }
    const loaded = loadSettings({}, {}, { ...config, outgoing: { ...outgoing, keep: "P7D" } })
    expect(Result.getFailure(loaded)).toMatchObject({
      value: {
        message: [
          "cluster.config.ts has the key outgoing.keep, which is not a setting: " +
          "use outgoing.retention instead",
          "cluster.config.ts has the key store.engine, which is not a setting: " +
          "use storage.engine instead",
          "cluster.config.ts has the key prot, which is not a setting: " +
          "remove it, or see `restante config` for the keys that exist"
        ].join("\n")
      }
    })
  })

  it.each([
    ["RETRY_SCHEDULE", "0,100ms,0.5s,1m,30min,2h,P1D,PT1H30M"],
    ["OUTBOUND_ALLOW", "127.0.0.0/8, ::1, fd00::/8"],
    ["BASE_URL", "https://post.example.org:8443"],
    ["CORS_ORIGINS", "https://a.example,https://b.example"],
    ["NATS_URL", "nats://10.0.0.1:4222, tls://nats.example,10.0.0.2"],
    ["NATS_REPLICAS", "3"],
    ["METRICS_LISTEN", "9464"],
    ["METRICS_LISTEN", "[::]:9464"],
    ["NODE_ID", "node-1"]
  ])("accepts %s = %s", (env, value) => {
    expect(restante(["config"], { [env]: value }).status).toBe(0)
  })

  it("reports in one line that it cannot reach the service", () => {
    const env = { ADMIN_TOKEN: "t", BASE_URL: "http://127.0.0.1:9" }
    const { status, stderr } = restante(["account", "list"], env)
    expect(status).toBe(75)
    expect(stderr.trim().split("\n")).toHaveLength(1)
    expect(stderr).toContain("http://127.0.0.1:9")
  })

  it("stops on an issuer's unusable keys, before it opens a store", () => {
    const whole = { AUTH_ISSUER: "https://issuer.example", AUTH_AUDIENCE: "post" }
    const missing = restante(["serve"], { ...whole, AUTH_JWKS: "/nowhere/jwks.json" })
    expect(missing).toMatchObject({
      status: 78,
      stderr: expect.stringMatching(/auth\.jwks is the file "\/nowhere\/jwks\.json": ENOENT/)
    })
    const alone = restante(["config"], { AUTH_JWKS: "https://issuer.example/jwks" })
    expect(alone.status).toBe(78)
    expect(alone.stderr).toMatch(/auth\.issuer is not set[^]*auth\.audience is not set/)
  })

  it("does not start with an admin token that could be guessed", () => {
    const dataDir = mkdtempSync(join(tmpdir(), "restante-cli-"))
    const env = { PORT: "0", DATA_DIR: dataDir, ADMIN_TOKEN: "x".repeat(21) }
    expect(restante(["serve"], env)).toMatchObject({
      status: 78,
      stderr: expect.stringMatching(/ADMIN_TOKEN has 21 characters, .* at least 22, /m)
    })
    expect(readdirSync(dataDir)).toEqual([])
  })

  it.each([
    ["neither", { NATS_URL: "nats://10.9.8.7:4222" }, "without TLS and without credentials"],
    [
      "no TLS",
      { NATS_URL: "tls://10.9.8.7,10.9.8.8", NATS_TOKEN: "t" },
      "nats://10.9.8.8 is without TLS, and others"
    ],
    ["no credentials", { NATS_URL: "tls://10.9.8.7" }, "is without credentials"],
    [
      "no TLS, beside servers of this machine",
      { NATS_URL: "127.0.0.1:1,[::1]:1,[2001:db8::1]:4222", NATS_TOKEN: "t" },
      "NATS at nats://[2001:db8::1]:4222 is without TLS, and others"
    ],
    [
      "a name, whatever that resolves to",
      { NATS_URL: `${hostname()},127.0.0.1.example.org,127.999.0.1,127.1,localhost.example.org` },
      `NATS at nats://${hostname()}, nats://127.0.0.1.example.org, nats://127.999.0.1, ` +
      "nats://127.1, nats://localhost.example.org is without TLS"
    ],
    ["no address", { NATS_URL: "0.0.0.0,[::],[::ffff:10.0.0.1]" }, "is without TLS and"]
  ])("does not start with NATS elsewhere that has %s", (_, env, message) => {
    const { status, stderr } = restante(["serve"], env)
    expect([status, stderr]).toEqual([78, expect.stringContaining(message)])
    expect(stderr).toContain("NATS_INSECURE=1")
  })

  it.each(["backup", "check"])("does not connect to such NATS for %s either", (name) => {
    const dataDir = mkdtempSync(join(tmpdir(), "restante-cli-"))
    const args = name === "check" ? [name] : [name, join(dataDir, "none.restante")]
    const { status, stderr } = restante(args, { NATS_URL: "tls://10.9.8.7" })
    expect([status, stderr]).toEqual([78, expect.stringContaining("is without credentials")])
  })

  it.each(["nats://[::1]:1", "127.0.0.2:1,localhost:1"])(
    "tries to connect to NATS at %s",
    (url) => {
      const dataDir = mkdtempSync(join(tmpdir(), "restante-cli-"))
      const { status, stderr } = restante(["serve"], { NATS_URL: url, DATA_DIR: dataDir })
      expect([status, stderr]).toEqual([75, expect.stringMatching(/NATS at .* cannot be used/)])
    }
  )

  it("requires a token for accounts", () => {
    const { status, stderr } = restante(["account", "list"])
    expect(status).toBe(2)
    expect(stderr).toContain("ADMIN_TOKEN")
  })

  it("recognizes a service that is not restante", async () => {
    const other = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1")
    await new Promise((resolve) => other.once("listening", resolve))
    const { port } = other.address() as AddressInfo // a TCP server's address is an object
    const { execFile } = await import("node:child_process")
    const env = { ...noContexts, ADMIN_TOKEN: "t", BASE_URL: `http://127.0.0.1:${port}` }
    const stderr = await new Promise<string>((resolve) => {
      execFile(process.execPath, [main, "account", "list"], { env }, (_, __, text) => resolve(text))
    })
    other.close()
    expect(stderr).toContain("is it restante?")
  })
})

describe("restante serve and account", () => {
  it("creates, lists and removes accounts, and exits with 0 on SIGTERM", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "restante-cli-"))
    const admin = "0123456789abcdef0123456789"
    const server = spawn(process.execPath, [main, "serve"], {
      env: { PORT: "0", HOST: "127.0.0.1", DATA_DIR: dataDir, ADMIN_TOKEN: admin },
      stdio: ["ignore", "pipe", "inherit"]
    })
    const ended = new Promise((resolve) => server.once("exit", resolve))
    const baseUrl = await new Promise<string>((resolve, reject) => {
      let output = ""
      server.stdout.setEncoding("utf8").on("data", (text: string) => {
        output += text
        const origin = /http:\/\/localhost:\d+/.exec(output)?.[0]
        if (origin !== undefined) resolve(origin)
      })
      server.once("exit", (status) => reject(new Error(`serve ended with ${status}`)))
    })
    const account = (...args: ReadonlyArray<string>) =>
      restante(["account", ...args], { ADMIN_TOKEN: admin, BASE_URL: baseUrl })

    const made = account("add", "bob", "--role", "quotes", "--role", "customers")
    expect(made).toMatchObject({ status: 0, stdout: expect.stringMatching(/^rst_[\w-]{43}\n$/) })
    expect(account("add", "bob")).toMatchObject({
      status: 1,
      stdout: "",
      stderr: expect.stringContaining("account bob already exists: create a token of it")
    })
    expect(account("list").stdout).toMatch(
      /^admin\tadmin\nbob\t(quotes,customers|customers,quotes)\n$/
    )
    const token = account("token", "bob", "--name", "ci", "--expires", "P30D")
    expect(token).toMatchObject({ status: 0, stdout: expect.stringMatching(/^rst_[\w-]{43}\n$/) })
    const narrow = ["--scope", "send", "--scope", "mailbox:box"]
    expect(account("token", "bob", ...narrow, "--expires", "P90D").status).toBe(0)
    expect(account("token", "bob", "--scope", "sent")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("the scope sent is unknown")
    })
    const listed: ReadonlyArray<
      { readonly id: string; readonly name?: string; readonly scope?: string }
    > = JSON.parse(account("tokens", "bob", "--json").stdout)
    expect(listed.map((one) => [one.name, one.scope]))
      .toEqual([[undefined, undefined], ["ci", undefined], [undefined, "send mailbox:box"]])
    expect(account("tokens", "bob").stdout).toMatch(/ never {2,}send mailbox:box\n/)
    expect(account("revoke", "bob", "--", listed[1]?.id ?? "").status).toBe(0)
    expect(account("revoke", "bob", "--all").status).toBe(0)
    expect(account("tokens", "bob").stdout).toBe("ID  CREATED  EXPIRES  LAST-USED  SCOPE  NAME\n")
    const file = join(dataDir, "revoked-token")
    writeFileSync(file, made.stdout)
    expect(account("list", "--token-file", file).status).toBe(1)
    expect(account("token", "bob").stdout).toMatch(/^rst_[\w-]{43}\n$/)
    expect(account("remove", "bob").status).toBe(0)
    expect(account("add", "bob").stderr).toContain("names are not reused")
    expect(account("list").stdout).toBe("admin\tadmin\n")
    expect(restante(["check", "--data-dir", dataDir]).status).toBe(75)

    server.kill("SIGTERM")
    expect(await ended).toBe(0)
    expect(restante(["check", "--data-dir", dataDir]).status).toBe(0)
    rmSync(dataDir, { recursive: true })
  })
})
