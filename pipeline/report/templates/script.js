for (const link of document.querySelectorAll(".zoom")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    link.classList.toggle("in");
  });
}
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll(".score details")) details.open = true;
});
