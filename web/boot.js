// Starts the app: remembers the theme, loads the module with its checksum, says so if that fails.
// The build writes hashed names and the checksum into the two lines below.
const GLUE = "./weir_web.js";
const WASM = { url: "./weir_web_bg.wasm", integrity: "" };

const app = document.getElementById("app");

try {
  const theme = localStorage.getItem("weir-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage the system's theme stays.
}

try {
  const options = WASM.integrity ? { integrity: WASM.integrity } : {};
  // The module is under way while the glue still loads.
  const wasm = fetch(new URL(WASM.url, import.meta.url), options);
  const [{ default: init, start }] = await Promise.all([import(GLUE), wasm]);
  await init({ module_or_path: wasm });
  start(app, document.getElementById("theme"));
  app.dataset.state = "ready";
} catch (reason) {
  const message = document.createElement("p");
  message.className = "failure";
  message.setAttribute("role", "alert");
  message.textContent =
    "The figure could not start, so this is a still picture. It needs WebAssembly and a recent browser; " +
    `reloading may help. (${reason instanceof Error ? reason.message : reason})`;
  app.prepend(message);
  app.dataset.state = "failed";
}
