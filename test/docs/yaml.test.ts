/** YAML of the pages: for GitHub Actions, Home Assistant, ingress-nginx and the chart of NATS. */
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { parseDocument, type ScalarTag } from "yaml"
import { longPollSecondsMax } from "../../http/limits.ts"
import { at, listAt, treeAt, wordAt, yamlOf } from "../deploy/sources.ts"
import { run, toolOf } from "../deploy/tools.ts"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { serverBinary } from "../runtime/nats/servers.ts"
import { blocksOf, textOf } from "./pages.ts"
import { fileOf } from "./proxies.ts"

afterAll(cleanUp)

/** `!secret name` of Home Assistant. */
const secretTag: ScalarTag = { tag: "!secret", resolve: (name) => `a secret: ${name}` }

/** The value of a block; throws for what a strict parser refuses, or warns of. */
const valueOf = (text: string): unknown => {
  const parsed = parseDocument(text, { merge: true, strict: true, customTags: [secretTag] })
  const [wrong] = [...parsed.errors, ...parsed.warnings]
  if (wrong !== undefined) throw wrong
  const value: unknown = parsed.toJS()
  return value
}

const yamlBlocks = (page: string) => blocksOf(page).filter(({ language }) => language === "yaml")

const saved = (name: string): unknown =>
  valueOf(
    yamlBlocks("docs/how-to/recipes.md").find(({ mark }) => mark?.text === name)?.text ?? ""
  )

describe("the step of GitHub Actions", () => {
  const step = listAt({ steps: saved("step.yml") }, "steps")[0]
  const script = wordAt(step, "run")

  it("has the members of a step that runs a script, always", () => {
    expect(Object.keys(treeAt(step)).sort()).toEqual(["env", "if", "name", "run"])
    expect(at(step, "if")).toBe("always()")
  })

  it("reads contexts that a step has, into variables: none is part of the script", () => {
    const read = Object.values(treeAt(step, "env")).map((text) =>
      /^\$\{\{ (\w+)\.(\w+) \}\}$/.exec(String(text))?.slice(1)
    )
    expect(read).toEqual([["vars", "MAILBOX"], ["secrets", "RESTANTE_TOKEN"], ["job", "status"]])
    expect(script).not.toContain("${{")
  })

  it("has a script for bash, whose variables the step or the runner sets", () => {
    expect(spawnSync("bash", ["-n"], { input: script, encoding: "utf8" }))
      .toMatchObject({ status: 0, stderr: "" })
    const named = new Set([...script.matchAll(/\$([A-Z_]+)/g)].map(([, name = ""]) => name))
    const own = Object.keys(treeAt(step, "env"))
    // https://docs.github.com/en/actions/reference/variables-reference
    const ofRunner = [
      ...["RUNNER_TEMP", "GITHUB_WORKFLOW", "GITHUB_REPOSITORY", "GITHUB_SERVER_URL"],
      ...["GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"]
    ]
    expect([...named].filter((name) => ![...own, ...ofRunner].includes(name))).toEqual([])
    expect(own.filter((name) => !named.has(name))).toEqual([])
  })
})

describe("rest_command of Home Assistant", () => {
  const command = treeAt(saved("configuration.yaml"), "rest_command", "deposit")

  it("has fields of its documentation, and a payload that differs each time", () => {
    // https://www.home-assistant.io/integrations/rest_command/
    expect(Object.keys(command).sort())
      .toEqual(["content_type", "headers", "method", "payload", "url"])
    expect(["delete", "get", "patch", "post", "put"]).toContain(command["method"])
    expect(new URL(wordAt(command, "url")).pathname).toBe("/mailboxes/alerts")
    expect(command["payload"]).toBe("{{ message }}\n{{ now().isoformat() }}")
  })

  it("has its token in the file of secrets", () => {
    expect(at(command, "headers")).toEqual({ authorization: "a secret: restante_authorization" })
    expect(textOf("docs/how-to/recipes.md"))
      .toContain("`restante_authorization: Bearer rst_…` in `secrets.yaml`")
  })
})

const kubernetes = yamlBlocks("docs/kubernetes.md").map(({ text }) => valueOf(text))

const ingress = "nginx.ingress.kubernetes.io"

describe("the annotations for ingress-nginx", () => {
  it("are texts, and say what nginx.conf of the other page says", () => {
    const annotations = treeAt(kubernetes[0], "metadata", "annotations")
    expect(Object.keys(annotations)).toEqual(
      ["proxy-buffering", "proxy-read-timeout", "proxy-body-size"].map((name) =>
        `${ingress}/${name}`
      )
    )
    const site = fileOf("nginx.conf")
    const [buffering, timeout, bodySize] = Object.keys(annotations).map((name) =>
      wordAt(annotations, name)
    )
    expect(site).toContain(`proxy_buffering ${buffering};`)
    expect(site).toContain(`proxy_read_timeout ${timeout}s;`)
    expect(Number(timeout)).toBeGreaterThan(longPollSecondsMax)
    expect(site).toContain(`client_max_body_size ${bodySize};`)
  })

  it("have a snippet that nginx takes in a server, as nginx.conf has it", () => {
    const snippet = wordAt(kubernetes[1], `${ingress}/server-snippet`)
    const spaceless = (text: string) => text.replace(/\s+/g, " ")
    expect(spaceless(fileOf("nginx.conf"))).toContain(spaceless(snippet.trim()))
    const folder = temporaryFolder()
    const check = (inside: string) => {
      const own = `pid ${folder}/pid; error_log ${folder}/error.log; events {}`
      const server = `server { listen 127.0.0.1:8080; access_log off; ${inside} }`
      writeFileSync(join(folder, "nginx.conf"), `${own} http { ${server} }\n`)
      return run(toolOf("nginx"), ["-t", "-p", folder, "-c", join(folder, "nginx.conf")])
    }
    expect(check(snippet)).toMatchObject({ code: 0 })
    expect(check(snippet.replace(";", "")).code).not.toBe(0)
  })
})

describe("the values of the chart of NATS", () => {
  const values = kubernetes[2]
  const config = treeAt(values, "config")
  const own = textOf("deploy/manifests/nats.conf")

  it("have the servers and the disk of the manifests, whose secret they read", () => {
    const [set] = yamlOf("deploy/manifests/k8s/nats.yaml").filter((one) =>
      at(one, "kind") === "StatefulSet"
    )
    expect(at(config, "cluster")).toEqual({ enabled: true, replicas: at(set, "spec", "replicas") })
    expect(at(config, "jetstream", "enabled")).toBe(true)
    expect(at(config, "jetstream", "fileStore", "pvc", "size")).toBe(
      at(set, "spec", "volumeClaimTemplates", 0, "spec", "resources", "requests", "storage")
    )
    // One server for each machine, as the manifests say by an affinity.
    const [apart] = listAt(
      set,
      ...["spec", "template", "spec", "affinity", "podAntiAffinity"],
      "requiredDuringSchedulingIgnoredDuringExecution"
    )
    expect(at(values, "podTemplate", "topologySpreadConstraints")).toEqual({
      [wordAt(apart, "topologyKey")]: { maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" }
    })
    const password = at(values, "container", "env", "NATS_PASSWORD", "valueFrom")
    const container = at(set, "spec", "template", "spec", "containers", 0)
    expect(listAt(container, "env").map((one) => at(one, "valueFrom"))).toContainEqual(password)
  })

  it("merge what nats-server takes, and what our own file says", () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, "store"))
    const merged = {
      ...treeAt(config, "merge"),
      jetstream: { store_dir: join(folder, "store"), ...treeAt(config, "jetstream", "merge") }
    }
    // `<< … >>` is how the chart writes what has no quotes.
    const written = JSON.stringify(merged).replace(/"<< (\$\w+) >>"/g, "$1")
    const file = join(folder, "nats.conf")
    const check = (text: string, environment: Readonly<Record<string, string>>) => {
      writeFileSync(file, text)
      return run(serverBinary(), ["-t", "-c", file], environment).code
    }
    expect(check(written, { NATS_PASSWORD: "a-password" })).toBe(0)
    expect(check(written, {})).not.toBe(0)
    expect(check(written.replace("always", "seldom"), { NATS_PASSWORD: "a" })).not.toBe(0)
    expect(own).toContain("sync_interval: always")
    const [kustomization] = yamlOf("deploy/manifests/k8s/kustomization.yaml")
    const literals = listAt(kustomization, "configMapGenerator", 0, "literals")
    const accounts = textOf("deploy/manifests/nats/accounts.conf")
    for (const [name, account] of Object.entries(treeAt(config, "merge", "accounts"))) {
      expect(accounts).toMatch(new RegExp(`^\\s*${name}\\b`, "m"))
      expect(accounts).toContain(`jetstream: ${String(at(account, "jetstream"))}`)
      expect(literals).toContain(`NATS_USER=${wordAt(account, "users", 0, "user")}`)
    }
  })
})
