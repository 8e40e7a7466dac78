/** Checks a page of the service: nothing in it acts but the service's own scripts. */

/** An expression whose value lists what does not belong into a page. */
export const foreignParts = `(() => {
  const found = []
  const names = ["page", "live", "list", "notify", "chips", "search", "charts"]
  const own = names.map((name) => location.origin + "/" + name + ".js")
  const add = (what, node) => found.push(what + ": " + node.outerHTML.slice(0, 200))
  const harmless = (value) => {
    try {
      return ["http:", "https:", "mailto:"].includes(new URL(value, document.baseURI).protocol)
    } catch {
      return true
    }
  }
  // The script of the charts places what it draws.
  const isOfChart = (node) =>
    location.pathname === "/cluster/history" && node.closest(".uplot") !== null
  const targets = ["href", "src", "action", "formaction", "data", "xlink:href", "poster", "ping"]
  for (const node of document.querySelectorAll("*")) {
    for (const { name, value } of node.attributes) {
      if (name.startsWith("on") || name === "srcdoc") add(name, node)
      if (name === "style" && !isOfChart(node)) add(name, node)
      if (targets.includes(name) && !harmless(value)) add(name, node)
    }
    const name = node.localName
    if (["iframe", "object", "embed", "base", "style", "foreignObject", "frame"].includes(name)) {
      add("element", node)
    }
    if (name === "script" && (!own.includes(node.src) || node.textContent !== "")) add(name, node)
    if (name === "meta" && node.httpEquiv !== "") add(name, node)
    if (name === "link" && new URL(node.href).origin !== location.origin) add(name, node)
  }
  return found
})()`
