/** The Helm chart, and the objects of deploy/manifests/k8s that it has to make. */
import { at, listAt, textOf, treeAt, wordAt, yamlOf } from "./sources.ts"

export const chartFolder = "deploy/manifests/helm/restante"

const kubernetes = "deploy/manifests/k8s"

/** The files of NATS, which a chart cannot read from elsewhere. */
export const natsFiles = ["nats.conf", "accounts.conf"] as const

/** The key of an object among others. */
export const keyOf = (object: unknown): string =>
  `${wordAt(object, "kind")} ${wordAt(object, "metadata", "name")}`

/** The settings that kustomize writes into the ConfigMap of the nodes. */
export const kustomizedSettings = (): Readonly<Record<string, string>> => {
  const [kustomization] = yamlOf(`${kubernetes}/kustomization.yaml`)
  return Object.fromEntries(
    listAt(kustomization, "configMapGenerator", 0, "literals").map((pair) => {
      const [name = "", ...rest] = String(pair).split("=")
      return [name, rest.join("=")]
    })
  )
}

const configMap = (name: string, data: Readonly<Record<string, string>>) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data
})

/** A StatefulSet with the image that kustomize substitutes for `restante`. */
const withImage = (object: unknown, image: string): unknown => {
  const text = JSON.stringify(object)
  const named: unknown = JSON.parse(
    text.replace("\"image\":\"restante\"", `"image":${JSON.stringify(image)}`)
  )
  return named
}

/**
 * The objects of the manifests by their keys, as kustomize makes them, but for the namespace, which
 * Helm creates, and the hashes in the names of ConfigMaps.
 */
export const kustomizedObjects = (): ReadonlyMap<string, unknown> => {
  const [kustomization] = yamlOf(`${kubernetes}/kustomization.yaml`)
  const image = treeAt(kustomization, "images", 0)
  const whole = `${wordAt(image, "newName")}:${wordAt(image, "newTag")}`
  const objects = listAt(kustomization, "resources").map(String)
    .filter((name) => name !== "namespace.yaml")
    .flatMap((name) => yamlOf(`${kubernetes}/${name}`))
    .map((object) => withImage(object, whole))
  const files = Object.fromEntries(
    natsFiles.map((name) => [name, textOf(`${kubernetes}/${name}`)])
  )
  const all = [...objects, configMap("restante", kustomizedSettings()), configMap("nats", files)]
  return new Map(all.map((object) => [keyOf(object), object]))
}

/** An object of the chart without the annotation by which a change of settings restarts pods. */
export const withoutChecksum = (object: unknown): unknown => {
  const annotations = at(object, "spec", "template", "metadata", "annotations")
  if (annotations === undefined) return object
  const copy: unknown = JSON.parse(
    JSON.stringify(
      object,
      (name, value: unknown) => name === "checksum/config" ? undefined : value
    )
  )
  return copy
}
