/** The chart by Helm, built from its Go modules: it is sound, and makes what the manifests have. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll, expect, it } from "vitest"
import { goBuildWithinMs, goProgram } from "./go-programs.ts"
import { chartFolder, keyOf, kustomizedObjects, withoutChecksum } from "./helm-chart.ts"
import { at, root, treeAt, yamlIn } from "./sources.ts"
import { run } from "./tools.ts"

const chart = join(root, chartFolder)

/** Where Helm looks for its own files. */
const environment = { HOME: tmpdir() }

let helm = ""
beforeAll(async () => {
  helm = await goProgram("helm.sh/helm/v3/cmd/helm", "v3.22.0")
}, goBuildWithinMs)

/** The objects of the chart with these options, by their keys. */
const rendered = (...options: ReadonlyArray<string>): ReadonlyMap<string, unknown> => {
  const args = ["template", "restante", chart, "--namespace", "restante", ...options]
  const { code, output } = run(helm, args, environment)
  expect([code, output]).toEqual([0, expect.stringContaining("kind: StatefulSet")])
  const objects = yamlIn(output, "the output of helm").filter((object) => object !== null)
  return new Map(objects.map((object) => [keyOf(object), object]))
}

it("is sound by helm lint", () => {
  const { code, output } = run(helm, ["lint", "--strict", chart], environment)
  expect([code, output]).toEqual([0, expect.stringContaining("0 chart(s) failed")])
})

it("makes the objects of the manifests by default", () => {
  const objects = rendered()
  const wanted = kustomizedObjects()
  expect([...objects.keys()].sort()).toEqual([...wanted.keys()].sort())
  for (const [key, object] of wanted) {
    expect([key, withoutChecksum(objects.get(key))]).toEqual([key, object])
  }
})

it("restarts the nodes when a setting changes", () => {
  const sumOf = (objects: ReadonlyMap<string, unknown>): unknown => {
    const template = at(objects.get("StatefulSet restante"), "spec", "template")
    return at(template, "metadata", "annotations", "checksum/config")
  }
  const before = sumOf(rendered())
  expect(String(before)).toMatch(/^[0-9a-f]{64}$/)
  expect(sumOf(rendered())).toBe(before)
  expect(sumOf(rendered("--set", "settings.LOG_LEVEL=warn"))).not.toBe(before)
})

it("writes numbers of a values file as they are there", () => {
  const folder = mkdtempSync(join(tmpdir(), "restante-helm-"))
  try {
    const file = join(folder, "values.yaml")
    const settings = "{ACTIVATIONS_MAX: 1500000, INBOX_MAX: 40, OUTGOING_RETENTION: 1.5}"
    writeFileSync(file, `settings: ${settings}\n`)
    const config = rendered("-f", file).get("ConfigMap restante")
    expect(treeAt(config, "data")).toMatchObject({
      ACTIVATIONS_MAX: "1500000",
      INBOX_MAX: "40",
      OUTGOING_RETENTION: "1.5"
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it("leaves out NATS, the policies and a setting if the values say so", () => {
  const objects = rendered(
    ...["--set", "nats.enabled=false", "--set", "networkPolicies.enabled=false"],
    ...["--set", "settings.METRICS_LISTEN=null", "--set", "image.tag=9.9.9", "--set", "replicas=5"]
  )
  expect([...objects.keys()].sort()).toEqual([
    "ConfigMap restante",
    "PodDisruptionBudget restante",
    "Service restante",
    "Service restante-nodes",
    "StatefulSet restante"
  ])
  expect(Object.keys(treeAt(objects.get("ConfigMap restante"), "data")))
    .not.toContain("METRICS_LISTEN")
  const set = objects.get("StatefulSet restante")
  expect([
    at(set, "spec", "replicas"),
    at(set, "spec", "template", "spec", "containers", 0, "image")
  ]).toEqual([5, "registry.example.org/restante:9.9.9"])
})
