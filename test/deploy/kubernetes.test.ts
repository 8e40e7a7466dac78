/** The Kubernetes manifests: every name refers to something, and the pods have few privileges. */
import { Result } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { allSettings, loadSettings } from "../../deploy/settings/settings.ts"
import { temporaryFolder } from "../e2e/process.ts"
import { serverBinary } from "../runtime/nats/servers.ts"
import { natsConfiguration } from "./servers.ts"
import { at, lastOf, listAt, root, treeAt, wordAt, yamlOf } from "./sources.ts"
import { run } from "./tools.ts"

const [kustomization] = yamlOf("deploy/manifests/k8s/kustomization.yaml")
const resources = listAt(kustomization, "resources").map(String)
const manifests = resources.flatMap((name) => yamlOf(`deploy/manifests/k8s/${name}`))
const named = (kind: string, name: string): unknown => {
  const found = manifests.find((one) =>
    at(one, "kind") === kind && at(one, "metadata", "name") === name
  )
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}
const ofKind = (kind: string) => manifests.filter((one) => at(one, "kind") === kind)
const nameOf = (one: unknown): string => wordAt(one, "metadata", "name")
const podOf = (one: unknown) => treeAt(one, "spec", "template", "spec")
const containerOf = (one: unknown) => treeAt(podOf(one), "containers", 0)
const sets = ofKind("StatefulSet")

/** Keys of the ConfigMaps that kustomize generates, and of the manual secret. */
const literals = Object.fromEntries(
  listAt(kustomization, "configMapGenerator", 0, "literals").map((pair) => {
    const [name = "", ...rest] = String(pair).split("=")
    return [name, rest.join("=")]
  })
)
const secret = treeAt(yamlOf("deploy/manifests/k8s/secret.example.yaml")[0], "stringData")
const secrets = {
  ADMIN_TOKEN: "a-token",
  NATS_PASSWORD: "12e4",
  ROUTE_PASSWORD: "34routes",
  SECRET_KEY: "a-key"
}

/** What the pods read from the secret if it is there. */
const optionalSecrets = new Set(["OTEL_EXPORTER_OTLP_HEADERS"])

/** A container's environment in the first pod, as Kubernetes resolves it. */
const environmentOf = (set: unknown): Record<string, string> => {
  const container = containerOf(set)
  const environment: Record<string, string> = "envFrom" in container ? { ...literals } : {}
  const values: Readonly<Record<string, string>> = secrets
  for (const one of listAt(container, "env")) {
    const from = at(one, "valueFrom")
    const value = at(one, "value") ??
      (at(from, "fieldRef") === undefined ? undefined : `${nameOf(set)}-0`) ??
      literals[String(at(from, "configMapKeyRef", "key"))] ??
      values[String(at(from, "secretKeyRef", "key"))]
    if (value === undefined && at(from, "secretKeyRef", "optional") === true) continue
    environment[wordAt(one, "name")] = String(value)
      .replace(/\$\((\w+)\)/g, (_, name: string) => environment[name] ?? "")
  }
  return environment
}

it("names existing files and objects", () => {
  for (const name of resources) {
    expect(existsSync(join(root, "deploy/manifests/k8s", name))).toBe(true)
  }
  for (const name of listAt(kustomization, "configMapGenerator", 1, "files")) {
    expect(existsSync(join(root, "deploy/manifests/k8s", String(name)))).toBe(true)
  }
  expect(nameOf(named("Namespace", wordAt(kustomization, "namespace")))).toBe("restante")
  expect(Object.keys(secret)).toEqual(Object.keys(secrets))
  for (const one of sets.flatMap((set) => listAt(containerOf(set), "env"))) {
    const from = at(one, "valueFrom")
    const secretKey = at(from, "secretKeyRef", "key")
    if (secretKey !== undefined && !optionalSecrets.has(String(secretKey))) {
      expect([at(from, "secretKeyRef", "optional"), Object.keys(secret)])
        .toEqual([undefined, expect.arrayContaining([secretKey])])
    }
    const key = at(from, "configMapKeyRef", "key")
    if (key !== undefined) expect(Object.keys(literals)).toContain(key)
  }
})

it("reads the credentials of a collector from the secret, which may lack them", () => {
  const [found] = sets.flatMap((set) => listAt(containerOf(set), "env"))
    .filter((one) => wordAt(one, "name") === "OTEL_EXPORTER_OTLP_HEADERS")
  expect(at(found, "valueFrom", "secretKeyRef")).toEqual({
    name: "restante",
    key: "OTEL_EXPORTER_OTLP_HEADERS",
    optional: true
  })
})

describe.each(sets.map((set) => [nameOf(set), set] as const))("the pods of %s", (name, set) => {
  it("are found by their service and their disruption budget", () => {
    const labels = treeAt(set, "spec", "template", "metadata", "labels")
    expect(at(set, "spec", "selector", "matchLabels")).toEqual(labels)
    const governing = named("Service", wordAt(set, "spec", "serviceName"))
    for (const service of [governing, named("Service", name)]) {
      expect(at(service, "spec", "selector")).toEqual(labels)
      const offered = listAt(containerOf(set), "ports").map((port) => at(port, "name"))
      for (const port of listAt(service, "spec", "ports")) {
        expect(offered).toContain(at(port, "targetPort") ?? at(port, "name"))
      }
    }
    expect(at(governing, "spec", "clusterIP")).toBe("None")
    const budget = named("PodDisruptionBudget", name)
    expect(at(budget, "spec", "selector", "matchLabels")).toEqual(labels)
    expect(at(budget, "spec", "maxUnavailable")).toBe(1)
    for (const one of listAt(podOf(set), "topologySpreadConstraints")) {
      expect(at(one, "labelSelector", "matchLabels")).toEqual(labels)
    }
  })

  it("run without privileges", () => {
    expect(podOf(set)).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } }
    })
    expect(at(podOf(set), "securityContext", "runAsUser")).toBeGreaterThan(0)
    expect(containerOf(set)).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] }
      }
    })
  })
})

describe("a node", () => {
  const set = named("StatefulSet", "restante")
  const environment = environmentOf(set)

  it("gets valid settings, and its pod's name", () => {
    const settingNames = new Set(allSettings.map(({ variable }) => variable))
    expect(Object.keys(environment).filter((name) => !settingNames.has(name))).toEqual([])
    const loaded = loadSettings(environment)
    expect(Result.isSuccess(loaded) ? "" : loaded.failure.message).toBe("")
    expect(environment).toMatchObject({ NODE_ID: "restante-0", ADMIN_TOKEN: "a-token" })
  })

  it("has the image's user, port and folder", () => {
    const [user] = lastOf("USER").split(":")
    expect(String(at(podOf(set), "securityContext", "runAsUser"))).toBe(user)
    expect(String(at(containerOf(set), "ports", 0, "containerPort"))).toBe(lastOf("EXPOSE"))
    expect(at(containerOf(set), "volumeMounts", 0, "mountPath")).toBe(lastOf("VOLUME"))
  })

  it("reads the key of stored secrets from its mount", () => {
    const mounts = listAt(containerOf(set), "volumeMounts")
    const mount = mounts.find((one) => at(one, "name") === "secret-key")
    const volume = listAt(podOf(set), "volumes").find((one) => at(one, "name") === "secret-key")
    const [item] = listAt(volume, "secret", "items")
    expect(`${wordAt(mount, "mountPath")}/${wordAt(item, "path")}`)
      .toBe(environment["SECRET_KEY_FILE"])
    expect(Object.keys(secret)).toContain(wordAt(item, "key"))
    // Others may not read it; the group of the pod must.
    expect(at(volume, "secret", "defaultMode")).toBe(0o440)
    expect(at(podOf(set), "securityContext", "fsGroup")).toBeGreaterThan(0)
  })

  it("has enough time to drain", () => {
    const settings = Result.getOrThrow(loadSettings(environment)).settings
    const [program, seconds] = listAt(containerOf(set), "lifecycle", "preStop", "exec", "command")
    expect(program).toBe("sleep")
    const needed = Number(seconds) + 3 * settings.drainTimeout / 1000
    expect(at(podOf(set), "terminationGracePeriodSeconds")).toBeGreaterThan(needed)
  })
})

describe("the servers", () => {
  const set = named("StatefulSet", "nats")

  it("are at the addresses that the nodes use", () => {
    const names = [0, 1, 2].map((index) => `nats-${index}.${wordAt(set, "spec", "serviceName")}`)
    expect(at(set, "spec", "replicas")).toBe(names.length)
    expect(literals["NATS_URL"]).toBe(names.map((name) => `nats://${name}:4222`).join(","))
    for (const name of names) expect(environmentOf(set)["SERVER_ROUTES"]).toContain(`@${name}:6222`)
    expect(listAt(containerOf(set), "ports").map((port) => at(port, "containerPort")))
      .toEqual([4222, 6222])
  })

  it("are probed in their pods, where the monitoring port is", () => {
    const probes = ["startupProbe", "livenessProbe", "readinessProbe"].map((name) =>
      listAt(containerOf(set), name, "exec", "command")
    )
    for (const [program, ...args] of probes) {
      expect([program, ...args.slice(0, -1)]).toEqual(["wget", "-q", "-O", "/dev/null"])
      expect(args.at(-1)).toMatch(
        /^http:\/\/127\.0\.0\.1:8222\/healthz(\?js-(enabled|server)-only=true)?$/
      )
    }
  })

  it("read their configuration from its mount", () => {
    const items = listAt(podOf(set), "volumes", 0, "configMap", "items")
    expect(items).toEqual([
      { key: "nats.conf", path: "nats.conf" },
      { key: "accounts.conf", path: "nats/accounts.conf" }
    ])
    const file = natsConfiguration(temporaryFolder())
    expect(run(serverBinary(), ["-t", "-c", file], environmentOf(set))).toMatchObject({ code: 0 })
  })
})

describe("the network policies", () => {
  const policies = ofKind("NetworkPolicy")

  /** Who may connect to which ports of the pods: labels of pods, or the name of a namespace. */
  const admitted = (policy: unknown, way: "ingress" | "egress", peers: "from" | "to") =>
    listAt(policy, "spec", way).map((rule) => [
      listAt(rule, peers).map((peer) =>
        at(peer, "podSelector", "matchLabels", "app.kubernetes.io/name") ??
          `namespace ${
            wordAt(peer, "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")
          }`
      ),
      listAt(rule, "ports").map((port) => at(port, "port"))
    ])

  it("cover every pod, and name ports that it has", () => {
    expect(policies.map(nameOf).sort()).toEqual(sets.map(nameOf).sort())
    for (const set of sets) {
      const policy = named("NetworkPolicy", nameOf(set))
      expect(at(policy, "spec", "podSelector")).toEqual(at(set, "spec", "selector"))
      expect(listAt(policy, "spec", "policyTypes")).toContain("Ingress")
      const offered = listAt(containerOf(set), "ports").map((port) => at(port, "name"))
      const open = listAt(policy, "spec", "ingress").flatMap((rule) =>
        listAt(rule, "ports").map((port) => at(port, "port"))
      )
      expect(open.sort()).toEqual(offered.sort())
    }
  })

  it("let only nodes reach NATS, the ingress the service, and Prometheus the metrics", () => {
    expect(admitted(named("NetworkPolicy", "nats"), "ingress", "from"))
      .toEqual([[["restante"], ["client"]], [["nats"], ["route"]]])
    expect(admitted(named("NetworkPolicy", "nats"), "egress", "to"))
      .toEqual([[["nats"], ["route"]], [["namespace kube-system"], [53, 53]]])
    expect(admitted(named("NetworkPolicy", "restante"), "ingress", "from"))
      .toEqual([[["namespace ingress-nginx"], ["http"]], [["namespace monitoring"], ["metrics"]]])
  })
})
