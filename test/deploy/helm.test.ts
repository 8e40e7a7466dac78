/** What of the Helm chart needs no Helm: its copies, its versions, and its settings. */
import { Result } from "effect"
import { expect, it } from "vitest"
import { allSettings, loadSettings } from "../../deploy/settings/settings.ts"
import { chartFolder, kustomizedSettings, natsFiles } from "./helm-chart.ts"
import { at, textOf, treeAt, wordAt, yamlOf } from "./sources.ts"

const [chart] = yamlOf(`${chartFolder}/Chart.yaml`)
const [values] = yamlOf(`${chartFolder}/values.yaml`)

it("has the version of the program", () => {
  // The package's own field.
  const { version } = JSON.parse(textOf("package.json")) as { readonly version: string }
  expect([at(chart, "version"), at(chart, "appVersion")]).toEqual([version, version])
})

it.each(natsFiles)("has the same %s as the other manifests", (name) => {
  expect(textOf(`${chartFolder}/files/${name}`)).toBe(textOf(`deploy/manifests/k8s/${name}`))
})

it("gives the nodes the settings of the other manifests, which exist and are right", () => {
  const settings = treeAt(values, "settings")
  expect(settings).toEqual(kustomizedSettings())
  const known = new Set(allSettings.map(({ variable }) => variable))
  expect(Object.keys(settings).filter((name) => !known.has(name))).toEqual([])
  expect(Result.isSuccess(loadSettings(kustomizedSettings()))).toBe(true)
})

it("waits for the end of a node as long as the other manifests", () => {
  const [set] = yamlOf("deploy/manifests/k8s/restante.yaml")
  const seconds = at(set, "spec", "template", "spec", "terminationGracePeriodSeconds")
  expect(at(values, "terminationGracePeriodSeconds")).toBe(seconds)
  expect(wordAt(values, "secretName")).toBe("restante")
})
